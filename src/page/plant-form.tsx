// Tested in test/http/page/page-changes.test.ts.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { INT64_MAX } from '../domain/int64.ts'
import { store } from './changes.ts'
import { type Refusal, refusalIn } from './client.ts'
import { problemOf } from './messages.ts'
import { close, keep } from './panel.ts'
import { Button, focus, focusElement } from './parts.tsx'
import { Conflict, listPlants } from './plants.ts'
import { FIELD_NAMES, FIELDS, type Plant, titleOf } from './rows.ts'
import { set, state } from './state.ts'

/** The form for a new plant, or for one that is edited. It keeps what was typed until the plant is stored. */
export function PlantForm({ edited }: { readonly edited: Plant | undefined }) {
  const form = useRef<HTMLFormElement>(null)
  const [problem, setProblem] = useState(problemIn())
  const [isBusy, setIsBusy] = useState(false)
  const { suggested, search, suggestBehind } = useSuggestedId(edited === undefined)
  // With an effect after the first frame, the focus could leave a field that is already typed in.
  useLayoutEffect(() => focusOn('name'), [])

  const send = async (plant: Plant, isSuggested: boolean) => {
    const refusal = await store(edited, plant)
    const isOpen = form.current !== null
    setIsBusy(false)
    setProblem(problemIn(refusal, isSuggested))
    if (isSuggested && (!refusal || refusal instanceof Conflict)) suggestBehind(plant.id)
    if (refusal && !isOpen) set({ notice: refusal.message })
    if (refusal instanceof Conflict && edited && isOpen) follow(refusal, plant)
    if (refusal || !isOpen) return
    if (edited) return close()
    keep({ typed: {} })
    focusOn('name')
  }
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    if (isBusy) return
    setIsBusy(true)
    // Somebody may be quicker than the search for an id.
    const isSuggested = !edited && state.typed.id === undefined
    const id = isSuggested ? suggested || (await search) : ''
    if (form.current === null) return
    const { plant, wrong } = plantIn(edited, id)
    if (wrong === undefined) return void send(plant, isSuggested)
    setIsBusy(false)
    setProblem(wrong)
    focusOn(wrong.field)
  }
  const sendText = edited ? 'Store the change' : 'Add'
  return (
    <form ref={form} class="plant-form" aria-labelledby="form-title" onSubmit={submit}>
      <h2 id="form-title">{edited ? 'Edit this plant' : 'New plant'}</h2>
      <div class="fields">
        {INPUTS.map(({ name, isOptional }) => (
          <FieldInput
            key={name}
            {...{ name, isOptional, readOnly: isBusy || (name === 'id' && edited !== undefined) }}
            text={edited?.[name] ?? (name === 'id' ? suggested : '')}
            problem={problem.field === name ? problem.message : ''}
          />
        ))}
      </div>
      {problem.field === '' && problem.message && <Problem key={problem.message} message={problem.message} />}
      <p class="buttons">
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {isBusy ? 'Storing…' : sendText}
        </button>
        <Button text="Close" onClick={close} />
      </p>
    </form>
  )
}

/** It takes the focus, so that who presses Enter once more sends nothing. */
const Problem = ({ message }: { readonly message: string }) => (
  <p ref={focusElement} tabIndex={-1} role="alert">
    {message}
  </p>
)

/** Lets the form edit what others have made of the plant, or make it anew. */
function follow({ now, message }: Conflict, typed: Plant): void {
  keep(now ? { panel: now } : { panel: 'new', typed })
  if (!now) set({ notice: message })
}

const focusOn = (field: string) => focus(`.plant-form [name=${field}]`)

/** The id stands behind the name, because it is suggested. */
const INPUTS = [...FIELDS.slice(1, 2), ...FIELDS.slice(0, 1), ...FIELDS.slice(2)]

type FieldInputProps = Readonly<
  Record<'name' | 'text' | 'problem', string> & Record<'isOptional' | 'readOnly', boolean>
>

/** An input that shows `text` until somebody types another one. */
function FieldInput({ name, isOptional, text, problem, readOnly }: FieldInputProps) {
  const { [name]: value = text, ...others } = state.typed
  // An input shows a text without its line breaks.
  const keepTyped = ({ currentTarget: { value } }: { readonly currentTarget: HTMLInputElement }) =>
    keep({ typed: value === text.replace(/[\r\n]/g, '') ? others : { ...others, [name]: value } })
  const isNew = state.panel === 'new'
  const help = isNew ? 'Any whole number that none of your plants has.' : 'The id of a plant does not change.'
  return (
    <div>
      <label for={name}>{`${titleOf(name)}${isOptional ? ' (optional)' : ''}`}</label>
      <input
        {...{ id: name, name, autocomplete: 'off', dir: 'auto', list: `${name}-texts`, value, readOnly }}
        onInput={keepTyped}
        aria-invalid={problem !== '' || undefined}
        aria-describedby={`${name}-help`}
      />
      {isOptional && (
        <datalist id={`${name}-texts`}>
          {[...new Set(state.list?.plants.flatMap((plant) => plant[name] ?? []))].map((text) => (
            <option key={text} value={text} />
          ))}
        </datalist>
      )}
      <small id={`${name}-help`}>{problem === '' ? name === 'id' && help : <span role="alert">{problem}</span>}</small>
    </div>
  )
}

/** What to tell about a refusal, and beside which field. */
function problemIn(refusal?: Refusal, isSuggested = false) {
  const isTaken = refusal instanceof Conflict && state.panel === 'new'
  if (!isTaken) return { field: '', message: refusal?.message ?? '' }
  return { field: 'id', message: `${refusal.message} ${isSuggested ? 'Take the next one.' : 'Choose another id.'}` }
}

/** The plant of the form, and what is wrong with its first wrong text. What is already stored is never wrong. */
function plantIn(shown: Plant | undefined, suggested: string) {
  const texts = FIELD_NAMES.map(
    (name) => [name, state.typed[name] ?? shown?.[name] ?? (name === 'id' ? suggested : '')] as const,
  )
  const isStored = ([field, text]: readonly [string, string]) => text === shown?.[field]
  const wrong = texts.find((each) => !isStored(each) && problemOf(...each) !== undefined)
  return {
    // If nothing is wrong, there are an id and a name.
    plant: Object.fromEntries(texts.filter((each) => each[1] !== '' || isStored(each))) as Plant,
    wrong: wrong && { field: wrong[0], message: problemOf(...wrong) ?? '' },
  }
}

/** So many requests look for the largest id, each for so many plants. */
const LOOKS_MAX = 32
const LOOK_PLANTS = 20

/** An id for a new plant, once it is found, and the search for it. `suggestBehind` suggests the first free id behind another. */
function useSuggestedId(isNew: boolean) {
  const [suggested, suggest] = useState('')
  const [search] = useState(() => (isNew ? findId().catch((error) => refusalIn(error) && '') : Promise.resolve('')))
  // Who types an id already must not find another one in the field.
  useEffect(() => void search.then((id) => document.activeElement?.id === 'id' || suggest(id)), [])
  return { suggested, search, suggestBehind: (id: string) => suggest(freeFrom(BigInt(id) + 1n)) }
}

/**
 * Finds the id after the largest one. It looks behind the list that is shown, doubles until there is nothing, and halves what is
 * between. If that does not find the largest id, or none can be larger, it takes the first free one.
 */
async function findId(): Promise<string> {
  const lastShown = BigInt(state.list?.plants.at(-1)?.id ?? 0)
  let low = lastShown > 0n ? lastShown : 0n
  let high: bigint | undefined
  for (let looks = 0, at = low; looks < LOOKS_MAX; looks++) {
    const { plants, end } = await listPlants(LOOK_PLANTS, `${at}`)
    const last = plants.at(-1)
    if (last) low = BigInt(last.id)
    else high = at
    if (low === high || (last && !end)) return freeFrom(low + 1n)
    at = high === undefined ? 2n * low + 1n : (low + high) / 2n
    if (at > INT64_MAX) at = INT64_MAX
  }
  return freeFrom(INT64_MAX + 1n)
}

/** The first id from this one on, or from 1 if none is so large, that no shown plant has, and none that Undo puts back. */
function freeFrom(from: bigint): string {
  const taken = new Set([...(state.list?.plants ?? []), ...state.undo].map(({ id }) => id))
  let id = from > INT64_MAX ? 1n : from
  while (taken.has(`${id}`)) id = id < INT64_MAX ? id + 1n : 1n
  return `${id}`
}
