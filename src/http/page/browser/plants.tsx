import { useEffect, useState } from 'preact/hooks'
import { type Client, type Plant, type PlantPage, refusalIn, type Session, toJson } from './client.ts'
import { NewPlant } from './new-plant.tsx'
import { Quiet } from './parts.tsx'
import { countOf, PlantTable } from './table.tsx'

const FIRST_PAGE = '?limit=50&include=id'
const DOWNLOAD_FIRST_PAGE = '?limit=5000&include=id'
/** How long a browser may take to open the file. */
const DOWNLOAD_OPENS_MS = 60_000

/** What happened last, and the deleted plants that can be created again. */
interface Notice {
  readonly text: string
  readonly undo?: readonly Plant[]
}

/** The plants of the user in pages, and all that the user can do with them. */
export function Plants({ client, canWrite }: Session) {
  const [queries, setQueries] = useState([FIRST_PAGE])
  const [page, setPage] = useState<PlantPage>({ plants: [], next: undefined })
  const [filter, setFilter] = useState('')
  const [{ text, undo = [] }, setNotice] = useState<Notice>({ text: '' })
  const [changes, setChanges] = useState(0)
  const query = queries.at(-1) ?? FIRST_PAGE
  const tell = (text: string) => setNotice({ text })
  const fail = (error: unknown) => tell(refusalIn(error).message)
  useEffect(() => {
    let isCurrent = true
    client.list(query).then((page) => isCurrent && setPage(page), fail)
    return () => {
      isCurrent = false
    }
  }, [query, changes])

  const changed = (notice: Notice) => {
    setNotice(notice)
    setChanges((count) => count + 1)
  }
  const remove = async (plants: readonly Plant[]) => {
    const { count, problem } = await each(plants, client.delete)
    changed({ text: `Deleted ${countOf(count)}. ${problem}`, undo: plants.slice(0, count) })
  }
  const restore = async (plants: readonly Plant[]) => {
    const { count, problem } = await each(plants, client.create)
    changed({ text: `Restored ${countOf(count)}. ${problem}`, undo: plants.slice(count) })
  }
  const turnTo = (queries: string[]) => {
    setQueries(queries)
    // There is no next page until this one is there.
    setPage({ ...page, next: undefined })
  }
  const shown = page.plants.filter((plant) => matches(plant, filter))

  return (
    <div class={canWrite ? 'writer' : 'reader'}>
      <NewPlant client={client} onCreated={(name) => changed({ text: `Added “${name}”.` })} />
      <div class="row">
        <input
          type="search"
          aria-label="Filter this page"
          placeholder="Filter this page"
          onInput={({ currentTarget }) => setFilter(currentTarget.value)}
        />
        <Quiet onClick={() => download(client, tell).catch(fail)}>Download all</Quiet>
      </div>
      <p role="status">
        {text}
        {undo[0] && (
          <button type="button" key={undo[0].id} ref={focus} onClick={() => restore(undo)}>
            Undo
          </button>
        )}
      </p>
      <PlantTable key={query} plants={shown} remove={remove} />
      <nav class="row" aria-label="Pages">
        <Quiet onClick={queries.length > 1 && (() => turnTo(queries.slice(0, -1)))}>Back</Quiet>
        <span>Page {queries.length}</span>
        <Quiet onClick={page.next && (() => turnTo([...queries, page.next ?? query]))}>Next</Quiet>
      </nav>
    </div>
  )
}

/** For the keyboard: the button that was used last may be gone. */
const focus = (element: HTMLElement | null) => element?.focus()

const matches = (plant: Plant, filter: string): boolean =>
  Object.values(plant).some((text) => text.toLowerCase().includes(filter.toLowerCase()))

/** Does something to plants one by one, until one is refused. Returns to how many it was done. */
async function each(plants: readonly Plant[], act: (plant: Plant) => Promise<void>) {
  let count = 0
  try {
    for (const plant of plants) {
      await act(plant)
      count++
    }
    return { count, problem: '' }
  } catch (error) {
    return { count, problem: refusalIn(error).message }
  }
}

/** Lets the browser store all plants as JSON Lines. It keeps the parts of a blob outside of the memory of the page. */
async function download(client: Client, tell: (text: string) => void): Promise<void> {
  const parts: Blob[] = []
  let count = 0
  for (let query: string | undefined = DOWNLOAD_FIRST_PAGE; query !== undefined; ) {
    const page: PlantPage = await client.list(query)
    parts.push(new Blob(page.plants.map((plant) => `${toJson(plant)}\n`)))
    count += page.plants.length
    tell(`Downloaded ${countOf(count)}.`)
    query = page.next
  }
  const href = URL.createObjectURL(new Blob(parts, { type: 'application/jsonl' }))
  Object.assign(document.createElement('a'), { href, download: 'plants.jsonl' }).click()
  setTimeout(() => URL.revokeObjectURL(href), DOWNLOAD_OPENS_MS)
}
