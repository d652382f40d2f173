import { useState } from 'preact/hooks'
import { type Client, CODES, type Plant, type Refusal, refusalIn } from './client.ts'
import { FIELD_NAMES, FIELDS, titleOf } from './fields.ts'

interface Props {
  readonly client: Client
  readonly onCreated: (name: string) => void
}

/** The form for a plant. It keeps what was typed until the plant is stored. A refusal stands beside its field. */
export function NewPlant({ client, onCreated }: Props) {
  const [isBusy, setIsBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal>()

  const create = async (form: HTMLFormElement) => {
    // The server says what a field must be, so an empty one is left out.
    const texts = [...new FormData(form)].map(([name, text]) => [name, String(text)] as const)
    const plant: Partial<Plant> = Object.fromEntries(texts.filter(([, text]) => text !== ''))
    setIsBusy(true)
    const refused = await client.create(plant).then(() => undefined, refusalIn)
    setIsBusy(false)
    setRefusal(refused)
    if (refused) return
    form.reset()
    form.querySelector('input')?.focus()
    onCreated(String(plant.name))
  }
  const submit = (event: SubmitEvent & { readonly currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    if (!isBusy) void create(event.currentTarget)
  }
  const wrong = refusal && fieldOf(refusal)
  return (
    <form class="row write" aria-label="Add a plant" onSubmit={submit}>
      {FIELDS.map(({ name, isOptional }) => (
        <div key={name}>
          <label for={name}>
            {titleOf(name)}
            {isOptional && ' (optional)'}
          </label>
          <input
            id={name}
            name={name}
            autocomplete="off"
            readOnly={isBusy}
            aria-invalid={name === wrong || undefined}
            aria-describedby={`${name}-refusal`}
          />
          <small id={`${name}-refusal`} role="alert">
            {name === wrong && refusal?.message}
          </small>
        </div>
      ))}
      <button type="submit" aria-disabled={isBusy}>
        Add
      </button>
      {refusal && !wrong && <p role="alert">{refusal.message}</p>}
    </form>
  )
}

/** The field that the server refused, if it is one: the message begins with its name. */
const fieldOf = ({ code, message }: Refusal): string | undefined =>
  code === CODES.exists ? 'id' : FIELD_NAMES.find((name) => message.startsWith(`\`${name}\` `))
