import { useEffect, useRef, useState } from 'preact/hooks'
import { type Address, formatAddress } from './address.ts'
import { listPlants, Refusal, refusalIn, settle } from './client.ts'
import { FIELD_NAMES, type Plant } from './fields.ts'
import { countOf } from './messages.ts'
import { open } from './panel.ts'
import { Button, Picture } from './parts.tsx'
import { readAll, updated, useRead } from './reading.ts'
import { go, set, state } from './state.ts'
import { PlantTable } from './table.tsx'

/** Plants on a page. */
const PAGE_PLANTS = 50
/** A search shows at most so many plants, so that the memory of the tab stays bounded. */
const HITS_MAX = 500

/** A page of plants, or what a search over all pages has found. */
export function PlantList() {
  const { address } = state
  const { filter, everywhere, sort, after, page } = address
  const { value: listing, problem, isLoading } = useRead(() => readPage({ after, page }), after)
  const search = useSearch(everywhere ? filter : '')
  const section = useRef<HTMLElement>(null)
  const turnedFrom = useRef(listing?.after)
  // Another page begins at the top.
  useEffect(() => {
    if (turnedFrom.current !== undefined) section.current?.scrollIntoView()
    turnedFrom.current = listing?.after
  }, [listing?.after])

  const { left = [], ghosts = [] } = listing ? rowsOf(listing) : {}
  // It is known which plants there are.
  const isFresh =
    listing?.changes === state.changes &&
    state.busy.size + state.maybeDeleted.length === 0 &&
    state.upload !== 'running'
  const listed = [...left, ...ghosts].sort(byId).filter((plant) => matches(plant, filter))
  const found = everywhere ? search.hits : listed
  const { next = '' } = listing ?? {}
  const hasPages = after !== '' || next !== ''
  const isWhole = listing !== undefined && !hasPages
  const plants = isWhole ? sorted(found, sort) : found
  /** The rows are those of another page. */
  const isOld = listing !== undefined && listing.after !== after
  return (
    <section ref={section} class={isOld ? 'list loading' : 'list'} aria-label="Plants">
      {filter !== '' && (
        <p class="filter">
          {everywhere ? <SearchState {...search} /> : `On this page, plants with “${filter}”:`}
          {!everywhere && hasPages && <Button text="Search all pages" onClick={() => go({ everywhere: true })} />}
          <Button text="Show all" onClick={() => go({ filter: '', everywhere: false })} />
        </p>
      )}
      {problem && (
        <p class="state" role="alert">
          {`${listing ? 'This is what was here before. ' : ''}The plants could not be loaded. ${problem}`}
          <Button text="Try again" onClick={() => set({ changes: state.changes + 1 })} />
        </p>
      )}
      {plants.length > 0 && <PlantTable key={`${everywhere} ${listing?.after}`} plants={plants} isWhole={isWhole} />}
      {plants.length === 0 && !problem && (
        <Emptiness isLoading={isLoading || (everywhere && search.state === 'running')} hasPages={hasPages} />
      )}
      {!everywhere && hasPages && listing && (
        <nav aria-label="Pages">
          {after !== '' && <a href={formatAddress({ ...address, after: '', page: 1 })}>First page</a>}
          <span aria-live="polite">{`Page ${listing.page}`}</span>
          {next !== '' && <a href={formatAddress({ ...address, after: next, page: listing.page + 1 })}>Next</a>}
        </nav>
      )}
      {isWhole && isFresh && !problem && <p>{`${countOf(left.length)} in all.`}</p>}
    </section>
  )
}

/** The page of an address, and the id behind which the next one begins. */
async function readPage({ after, page }: Pick<Address, 'after' | 'page'>) {
  const { changes, updates } = state
  const found = await listPlants(`?limit=${PAGE_PLANTS}${after && `&after=${after}`}&include=id`)
  const next = new URLSearchParams(found.next).get('after') ?? ''
  const isIn = (id: string) =>
    (after === '' || BigInt(id) > BigInt(after)) && (next === '' || BigInt(id) <= BigInt(next))
  const ids = new Set(found.plants.map(({ id }) => id))
  settle(({ id }) => !ids.has(id) && isIn(id))
  return { plants: found.plants, next, after, page, changes, isIn, from: updates.length }
}

/** The plants of a page as changes of this tab have made them, and those that are or may be deleted, which keep their rows. */
function rowsOf({ plants, from, isIn }: Awaited<ReturnType<typeof readPage>>) {
  const gone = [...state.deleted, ...state.maybeDeleted]
  const left = updated(plants, from, isIn).filter((plant) => !gone.includes(plant))
  const ids = new Set(left.map(({ id }) => id))
  return { left, ghosts: gone.filter(({ id }) => !ids.has(id) && isIn(id)) }
}

const byId = (one: Plant, other: Plant): number => (BigInt(one.id) < BigInt(other.id) ? -1 : 1)

/** The plants in the order of a field; with a minus before its name in the reverse order. */
function sorted(plants: readonly Plant[], sort: string): readonly Plant[] {
  const field = sort.replace('-', '')
  if (!FIELD_NAMES.includes(field)) return plants
  const byText = (one: Plant, other: Plant) => (one[field] ?? '').localeCompare(other[field] ?? '')
  const ascending = [...plants].sort(field === 'id' ? byId : byText)
  return sort.startsWith('-') ? ascending.reverse() : ascending
}

/** Whether one of the texts of a plant contains a text, in any letter case. */
const matches = (plant: Plant, filter: string): boolean =>
  Object.values(plant).some((text) => text.toLowerCase().includes(filter.toLowerCase()))

/** Why the list has no rows: it is on its way, nothing matches, or there is nothing. */
function Emptiness({ isLoading, hasPages }: Readonly<Record<'isLoading' | 'hasPages', boolean>>) {
  const { filter } = state.address
  if (isLoading) return <p class="state">Loading your plants…</p>
  if (filter !== '') return <p class="state">{`No plant here contains “${filter}”.`}</p>
  if (hasPages) return <p class="state">There are no plants on this page any more.</p>
  return (
    <div class="state">
      <Picture />
      <p>You have no plants yet.</p>
      {state.canWrite && <Button text="Add your first plant" kind="primary" onClick={() => open('new')} />}
    </div>
  )
}

/** What a search over all pages has found so far. */
interface Search {
  readonly filter: string
  /** How many updates there were when it began. */
  readonly from: number
  readonly hits: readonly Plant[]
  readonly searched: number
  readonly state: 'running' | 'whole' | 'stopped' | 'full' | Refusal
  readonly stop: () => void
}

const NOTHING: Search = { filter: '', from: 0, hits: [], searched: 0, state: 'running', stop() {} }

/** Searches all pages while there is a text to search for. Changes of this tab do not begin it anew, because it knows of them. */
function useSearch(filter: string): Search {
  const [search, setSearch] = useState(NOTHING)
  useEffect(() => {
    if (filter === '') return
    const job = new AbortController()
    let found: Search = { ...NOTHING, filter, from: state.updates.length, stop: () => end('stopped') }
    const show = (change: Partial<Search>) => {
      if (job.signal.aborted) return
      found = { ...found, ...change }
      setSearch(found)
    }
    const end = (state: Search['state']) => {
      show({ state })
      job.abort()
    }
    const add = (plants: readonly Plant[]) => {
      const hits = [...found.hits, ...plants.filter((plant) => matches(plant, filter))].slice(0, HITS_MAX)
      show({ hits, searched: found.searched + plants.length })
      if (hits.length === HITS_MAX) end('full')
    }
    show({})
    void readAll(job, add)
      .then(() => 'whole' as const, refusalIn)
      .then(end)
    return () => job.abort()
  }, [filter])
  return search.filter === filter
    ? { ...search, hits: updated(search.hits, search.from).filter((plant) => matches(plant, filter)) }
    : NOTHING
}

function SearchState({ hits, searched, state: how, stop }: Search) {
  const { filter } = state.address
  const found = `${countOf(hits.length)} with “${filter}” among ${searched.toLocaleString('en')}`
  if (how instanceof Refusal)
    return <span role="alert">{`The search has ended. ${how.message} So far: ${found}.`}</span>
  const texts = {
    running: `Searching all pages: ${found} so far.`,
    whole: `On all pages: ${found}.`,
    stopped: `The search is stopped: ${found}.`,
    full: `The first ${found}. There may be more: search for a longer text.`,
  }
  return (
    <>
      <span aria-live="polite">{texts[how]}</span>
      {how === 'running' && <Button text="Stop" onClick={stop} />}
    </>
  )
}
