import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { add, change, edit } from './changes.ts'
import { CODES } from './client.ts'
import { FIELDS, type Plant, titleOf } from './fields.ts'
import { describePlant, problemOf } from './messages.ts'
import { close } from './panel.ts'
import { Button } from './parts.tsx'
import { suggestedId } from './reading.ts'
import { set } from './state.ts'

const store = (plant: Plant, edited: Plant | undefined) =>
  edited === undefined
    ? add(plant)
    : change([edited], async () => {
        await edit({ old: edited, new: plant })
        return `Changed to ${describePlant(plant)}.`
      })

/** The form for a new plant, or for one that is edited. It keeps what was typed until the plant is stored. */
export function PlantForm({ edited }: { readonly edited: Plant | undefined }) {
  const form = useRef<HTMLFormElement>(null)
  const [problem, setProblem] = useState({ field: '', message: '' })
  const [isBusy, setIsBusy] = useState(false)
  const defaultOf = (field: string) => edited?.[field] ?? (field === 'id' ? suggestedId() : '')
  const focus = (field: string) => form.current?.querySelector<HTMLInputElement>(`[name=${field}]`)?.focus()
  const begin = () => focus(defaultOf('id') === '' ? 'id' : 'name')
  // With an effect after the first frame, the focus could leave a field that is already typed in.
  useLayoutEffect(begin, [])

  const send = async (plant: Plant) => {
    setIsBusy(true)
    const { code, message } = (await store(plant, edited)) ?? { code: 0, message: '' }
    setIsBusy(false)
    const isTaken = code === CODES.exists
    setProblem({ field: isTaken ? 'id' : '', message: isTaken ? `${message} Choose another id.` : message })
    if (form.current === null) return set({ notice: message }) // It was closed meanwhile.
    if (message !== '') return
    if (edited) return close()
    form.current.reset()
    begin()
  }
  const submit = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    if (isBusy) return
    const texts = [...new FormData(event.currentTarget)].map(([name, text]) => [name, String(text)] as const)
    const wrong = texts.find(([field, text]) => problemOf(field, text) !== undefined)
    // Otherwise there are an id and a name.
    if (wrong === undefined) return void send(Object.fromEntries(texts.filter(([, text]) => text !== '')) as Plant)
    setProblem({ field: wrong[0], message: problemOf(...wrong) ?? '' })
    focus(wrong[0])
  }
  const idHelp = edited ? 'The id of a plant does not change.' : 'Any whole number that none of your plants has.'
  return (
    <form ref={form} class="plant-form" aria-labelledby="form-title" onSubmit={submit}>
      <h2 id="form-title">{edited ? 'Edit this plant' : 'New plant'}</h2>
      <div class="fields">
        {FIELDS.map(({ name, isOptional }) => (
          <div key={name}>
            <label for={name}>{`${titleOf(name)}${isOptional ? ' (optional)' : ''}`}</label>
            <input
              {...{ id: name, name, defaultValue: defaultOf(name), autocomplete: 'off', dir: 'auto' }}
              readOnly={isBusy || (name === 'id' && edited !== undefined)}
              aria-invalid={problem.field === name || undefined}
              aria-describedby={`${name}-help`}
            />
            <small id={`${name}-help`}>
              {problem.field === name ? <span role="alert">{problem.message}</span> : name === 'id' && idHelp}
            </small>
          </div>
        ))}
      </div>
      {problem.field === '' && problem.message && <p role="alert">{problem.message}</p>}
      {edited && <p>While the change is stored, others see the plant missing for a moment.</p>}
      <p class="buttons">
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {isBusy ? 'Storing…' : edited ? 'Store the change' : 'Add'}
        </button>
        <Button text="Close" onClick={close} />
      </p>
    </form>
  )
}
