import { useEffect, useRef, useState } from 'preact/hooks'
import { CODES, refusalIn } from './client.ts'
import { FIELDS, type Plant, titleOf } from './fields.ts'
import type { Garden } from './garden.ts'
import { problemOf } from './messages.ts'
import { Button } from './parts.tsx'

interface Props {
  /** The plant that is edited; `undefined` for a new one. */
  readonly edited: Plant | undefined
  /** An id for a new plant that no other one has, or empty. */
  readonly freeId: string
  /** Stores the plant, or rejects with a `Refusal`. Returns a problem if nothing was stored. */
  readonly store: (plant: Plant) => Promise<string | undefined>
  readonly close: () => void
  readonly garden: Garden
}

/** The form for a plant. It keeps what was typed until the plant is stored. What is wrong stands beside its field. */
export function PlantForm({ edited, freeId, store, close, garden }: Props) {
  const form = useRef<HTMLFormElement>(null)
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>(edited ?? {})
  const [problem, setProblem] = useState({ field: '', message: '' })
  const [isBusy, setIsBusy] = useState(false)
  const textOf = (field: string) => typed[field] ?? (field === 'id' ? freeId : '')
  const focus = (field: string) => form.current?.querySelector<HTMLInputElement>(`[name=${field}]`)?.focus()
  const begin = () => focus(edited || freeId ? 'name' : 'id')
  useEffect(begin, [])

  const send = async (plant: Plant) => {
    setIsBusy(true)
    const refusal = await store(plant).catch(refusalIn)
    const isTaken = refusal instanceof Error && refusal.code === CODES.exists
    const message = refusal instanceof Error ? refusal.message : (refusal ?? '')
    setIsBusy(false)
    setProblem({ field: isTaken ? 'id' : '', message: isTaken ? `${message} Choose another id.` : message })
    if (form.current === null) garden.tell(message) // It was closed meanwhile.
    if (message !== '') return
    if (edited) return close()
    setTyped({})
    begin()
  }
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    if (isBusy) return
    const texts = FIELDS.map(({ name }) => [name, textOf(name)] as const)
    const wrong = texts.find(([field, text]) => problemOf(field, text) !== undefined)
    // Otherwise there are an id and a name.
    if (wrong === undefined) return void send(Object.fromEntries(texts.filter(([, text]) => text !== '')) as Plant)
    setProblem({ field: wrong[0], message: problemOf(...wrong) ?? '' })
    focus(wrong[0])
  }
  return (
    <form ref={form} class="plant-form" aria-labelledby="form-title" onSubmit={submit}>
      <h2 id="form-title">{edited ? 'Edit this plant' : 'New plant'}</h2>
      <div class="fields">
        {FIELDS.map((field) => (
          <Field
            key={field.name}
            {...field}
            value={textOf(field.name)}
            isFixed={isBusy || (field.name === 'id' && edited !== undefined)}
            problem={problem.field === field.name ? problem.message : ''}
            help={helpOn(field.name, edited !== undefined)}
            onInput={(text) => setTyped((before) => ({ ...before, [field.name]: text }))}
          />
        ))}
      </div>
      {problem.field === '' && problem.message && <p role="alert">{problem.message}</p>}
      {edited && <p>While the change is stored, others see the plant missing for a moment.</p>}
      <p class="buttons">
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {isBusy ? 'Storing…' : edited ? 'Store the change' : 'Add'}
        </button>
        <Button onClick={close}>Close</Button>
      </p>
    </form>
  )
}

function helpOn(field: string, isEdit: boolean): string {
  if (field !== 'id') return ''
  return isEdit ? 'The id of a plant does not change.' : 'Any whole number that none of your plants has.'
}

interface FieldProps extends Readonly<Record<'name' | 'value' | 'problem' | 'help', string>> {
  readonly isOptional: boolean
  readonly isFixed: boolean
  readonly onInput: (text: string) => void
}

const Field = ({ name, value, problem, help, isOptional, isFixed, onInput }: FieldProps) => (
  <div>
    <label for={name}>
      {titleOf(name)}
      {isOptional && ' (optional)'}
    </label>
    <input
      {...{ id: name, name, value }}
      autocomplete="off"
      dir="auto"
      readOnly={isFixed}
      aria-invalid={problem !== '' || undefined}
      aria-describedby={`${name}-help`}
      onInput={({ currentTarget }) => onInput(currentTarget.value)}
    />
    <small id={`${name}-help`}>{problem === '' ? help : <span role="alert">{problem}</span>}</small>
  </div>
)
