import { useEffect, useState } from 'preact/hooks'
import { type Client, countOf, type Listed, type Plant, refusalIn } from './client.ts'
import { NewPlant } from './new-plant.tsx'
import { PlantTable } from './table.tsx'

const FIRST_PAGE = '?limit=50&include=id'
/** How long a browser may take to open the downloaded file. */
const DOWNLOAD_OPENS_MS = 60_000

interface Props {
  readonly client: Client
  readonly canWrite: boolean
}

/** The plants of the user in pages, and all that the user can do with them. */
export function Plants({ client, canWrite }: Props) {
  const [queries, setQueries] = useState([FIRST_PAGE])
  const [changes, setChanges] = useState(0)
  const [{ plants, next }, setPage] = useState<Listed>({ plants: [], next: undefined })
  const [filter, setFilter] = useState('')
  const [notice, setNotice] = useState<Notice>({ text: '' })
  const query = queries.at(-1) ?? FIRST_PAGE

  useEffect(() => {
    let isShown = true
    client.list(query).then(
      (page) => isShown && setPage(page),
      (error) => setNotice({ text: refusalIn(error).message }),
    )
    return () => {
      isShown = false
    }
  }, [query, changes])

  const changed = (notice: Notice) => {
    setNotice(notice)
    setChanges((count) => count + 1)
  }
  const remove = async (plants: readonly Plant[]) => {
    const { done, refusal } = await forEach(plants, client.delete)
    changed({ text: `Deleted ${countOf(done.length)}. ${refusal}`, undo: done })
  }
  const restore = async (plants: readonly Plant[]) => {
    const { done, refusal } = await forEach(plants, client.create)
    changed({ text: `Created ${countOf(done.length)} again. ${refusal}`, undo: plants.slice(done.length) })
  }
  const download = () =>
    client
      .download((count) => setNotice({ text: `Downloaded ${countOf(count)}.` }))
      .then(save, (error) => setNotice({ text: refusalIn(error).message }))

  return (
    <>
      {canWrite && <NewPlant client={client} onCreated={(name) => changed({ text: `Added “${name}”.` })} />}
      <div class="row">
        <input
          type="search"
          aria-label="Filter this page"
          placeholder="Filter this page"
          value={filter}
          onInput={({ currentTarget }) => setFilter(currentTarget.value)}
        />
        <button type="button" onClick={download}>
          Download all
        </button>
      </div>
      <NoticeLine {...notice} restore={restore} />
      <PlantTable
        key={query}
        plants={plants.filter((plant) => matches(plant, filter))}
        canWrite={canWrite}
        remove={remove}
      />
      <nav class="row" aria-label="Pages">
        <button type="button" disabled={queries.length === 1} onClick={() => setQueries(queries.slice(0, -1))}>
          Back
        </button>
        <span>Page {queries.length}</span>
        <button type="button" disabled={next === undefined} onClick={() => next && setQueries([...queries, next])}>
          Next
        </button>
      </nav>
    </>
  )
}

const matches = ({ id, name, tag = '' }: Plant, filter: string): boolean =>
  [id, name, tag].some((text) => text.toLowerCase().includes(filter.toLowerCase()))

/** Does something to plants one by one, until the server refuses one. */
async function forEach(plants: readonly Plant[], act: (plant: Plant) => Promise<void>) {
  const done: Plant[] = []
  try {
    for (const plant of plants) {
      await act(plant)
      done.push(plant)
    }
    return { done, refusal: '' }
  } catch (error) {
    return { done, refusal: refusalIn(error).message }
  }
}

/** Lets the browser store a file. */
function save(blob: Blob): void {
  const href = URL.createObjectURL(blob)
  Object.assign(document.createElement('a'), { href, download: 'plants.jsonl' }).click()
  setTimeout(() => URL.revokeObjectURL(href), DOWNLOAD_OPENS_MS)
}

/** What happened last, and the deleted plants that can be created again. */
interface Notice {
  readonly text: string
  readonly undo?: readonly Plant[]
}

/** What happened last. The keyboard goes to its button, because the button that was used may be gone. */
const NoticeLine = ({
  text,
  undo = [],
  restore,
}: Notice & { readonly restore: (plants: readonly Plant[]) => void }) => (
  <p role="status">
    {text}{' '}
    {undo.length > 0 && (
      <button type="button" key={undo[0]?.id} ref={focus} onClick={() => restore(undo)}>
        Undo
      </button>
    )}
  </p>
)
const focus = (element: HTMLElement | null) => element?.focus()
