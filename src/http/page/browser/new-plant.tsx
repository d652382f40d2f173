import { useState } from 'preact/hooks'
import { type Client, CODES, type Refusal, refusalIn } from './client.ts'

const LABELS = { id: 'Id', name: 'Name', tag: 'Tag (optional)' }

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
    const plant = Object.fromEntries([...new FormData(form)].filter(([, text]) => text !== ''))
    setIsBusy(true)
    const refused = await client.create(plant).then(() => undefined, refusalIn)
    setIsBusy(false)
    setRefusal(refused)
    if (refused) return
    form.reset()
    form.querySelector('input')?.focus()
    onCreated(String(plant.name))
  }

  const wrong = refusal && fieldOf(refusal)
  return (
    <form
      class="row"
      aria-label="Add a plant"
      onSubmit={(event) => {
        event.preventDefault()
        if (!isBusy) void create(event.currentTarget)
      }}
    >
      {Object.entries(LABELS).map(([name, label]) => (
        <label key={name}>
          {label}
          <input
            name={name}
            autocomplete="off"
            readOnly={isBusy}
            aria-invalid={name === wrong || undefined}
            aria-describedby={`${name}-refusal`}
          />
          <small id={`${name}-refusal`} role="alert">
            {name === wrong && refusal?.message}
          </small>
        </label>
      ))}
      <button type="submit" aria-busy={isBusy}>
        Add
      </button>
    </form>
  )
}

/** The field that the server refused: its message begins with that name. Other refusals stand beside the last field. */
const fieldOf = ({ code, message }: Refusal): string =>
  code === CODES.exists ? 'id' : (/^`(\w+)`/.exec(message)?.[1] ?? 'tag')
