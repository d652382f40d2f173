// Tested in test/http/socket/page-lists.test.ts.
import { useEffect } from 'preact/hooks'
import { type Address, formatAddress } from './address.ts'
import { listChanged, listPlants, Refusal, refusalIn, settle } from './client.ts'
import { FIELD_NAMES, type Plant } from './fields.ts'
import { countOf, shown } from './messages.ts'
import { open } from './panel.ts'
import { Button, Picture, useTitle } from './parts.tsx'
import { refresh, updated, useRead } from './reading.ts'
import { matches, SearchState, useSearch } from './search.tsx'
import { go, set, state } from './state.ts'
import { PlantTable } from './table.tsx'

/** Plants on a page. */
const PAGE_PLANTS = 50

/** A page of plants, or what a search over all pages has found. */
export function PlantList() {
  const { address } = state
  const { filter, sort, after, page } = address
  const { value: listing, problem, isLoading } = useRead(() => readPage({ after, page }), after)
  useEffect(() => {
    const lookAgain = () => void (listing && !document.hidden && tellNews(listing))
    document.addEventListener('visibilitychange', lookAgain)
    return () => document.removeEventListener('visibilitychange', lookAgain)
  }, [listing])
  const { left = [], ghosts = [] } = listing ? rowsOf(listing) : {}
  // It is known which plants there are.
  const isFresh =
    listing?.changes === state.changes &&
    state.busy.size + state.maybeDeleted.length === 0 &&
    state.upload !== 'running'
  const { next = '' } = listing ?? {}
  const hasPages = after !== '' || next !== ''
  const isWhole = listing !== undefined && !hasPages
  const search = useSearch(listing && hasPages ? filter : '')
  const listed = [...left, ...ghosts].sort(byId).filter((plant) => matches(plant, filter))
  const found = search.isFound ? search.hits : listed
  const plants = isWhole ? sorted(found, sort) : found
  const toPage = (after: string, page: number) => ({ href: formatAddress({ ...address, after, page }), onClick: toTop })
  const before = listing?.page === 2 ? '' : state.starts.get((listing?.page ?? 1) - 1)
  useTitle(filter === '' ? `Plants, page ${listing?.page ?? page}` : `“${shown(filter)}”`)
  /** The rows are those of another page. */
  const isOld = listing !== undefined && listing.after !== after
  return (
    <section class={isOld ? 'list loading' : 'list'} aria-label="Plants" tabIndex={-1}>
      {filter !== '' && (
        <p class="filter">
          <SearchState {...search} />
          <Button text="Show all" onClick={() => go({ filter: '' })} />
        </p>
      )}
      {problem && (
        <p class="state" role="alert">
          {`${listing ? 'This is what was here before. ' : ''}The plants could not be loaded. ${problem}`}
          <Button text="Try again" onClick={refresh} />
        </p>
      )}
      {plants.length > 0 && <PlantTable key={listing?.after} plants={plants} isWhole={isWhole} />}
      {plants.length === 0 && !problem && <Emptiness isLoading={isLoading || search.isSearching} hasPages={hasPages} />}
      {!search.isFound && hasPages && listing && (
        <nav aria-label="Pages">
          {after !== '' && before !== '' && <a {...toPage('', 1)}>First page</a>}
          {before !== undefined && <a {...{ rel: 'prev', ...toPage(before, listing.page - 1) }}>Previous</a>}
          <span aria-live="polite">{`Page ${listing.page}`}</span>
          {next !== '' && <a {...{ rel: 'next', ...toPage(next, listing.page + 1) }}>Next</a>}
        </nav>
      )}
      {isWhole && isFresh && !problem && left.length > 0 && <p>{`${countOf(left.length)} in all.`}</p>}
    </section>
  )
}

/** Another page begins at the top. */
const toTop = () => document.querySelector('.list')?.scrollIntoView()

/** The page of an address, and the id behind which the next one begins. */
async function readPage({ after, page }: Pick<Address, 'after' | 'page'>) {
  const { changes, updates } = state
  const query = `?limit=${PAGE_PLANTS}${after && `&after=${after}`}&include=id`
  const found = await listPlants(query)
  const next = new URLSearchParams(found.next).get('after') ?? ''
  const isIn = (id: string) =>
    (after === '' || BigInt(id) > BigInt(after)) && (next === '' || BigInt(id) <= BigInt(next))
  const ids = new Set(found.plants.map(({ id }) => id))
  settle(({ id }) => !ids.has(id) && isIn(id))
  set({ starts: new Map(state.starts).set(page, after), listed: found.plants })
  return { ...found, query, next, after, page, changes, isIn, from: updates.length }
}

type Listing = Awaited<ReturnType<typeof readPage>>

/** The plants of a page as changes of this tab have made them, and those that are or may be deleted, which keep their rows. */
function rowsOf({ plants, from, isIn }: Listing) {
  const gone = [...state.deleted, ...state.maybeDeleted]
  const left = updated(plants, from, isIn).filter((plant) => !gone.includes(plant))
  const ids = new Set(left.map(({ id }) => id))
  return { left, ghosts: gone.filter(({ id }) => !ids.has(id) && isIn(id)) }
}

/** Tells that others have changed a page of the list, if it is still shown. */
async function tellNews(listing: Listing): Promise<void> {
  const now = await listChanged(listing.query, listing.etag).catch(refusalIn)
  if (state.listed !== listing.plants || now === undefined || now instanceof Refusal || !isOther(now, listing)) return
  set({ notice: 'Somebody has changed this list: Refresh shows it as it is now.' })
}

/** Whether a page has other plants now than are shown, as far as both reach. */
function isOther(now: readonly Plant[], listing: Listing): boolean {
  const textOf = (plants: readonly Plant[]) => JSON.stringify(plants, FIELD_NAMES)
  const rows = rowsOf(listing).left.sort(byId).slice(0, PAGE_PLANTS)
  return textOf(rows) !== textOf(now.filter(({ id }) => listing.isIn(id)))
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

/** Why the list has no rows: it is on its way, nothing matches, or there is nothing. */
function Emptiness({ isLoading, hasPages }: Readonly<Record<'isLoading' | 'hasPages', boolean>>) {
  const { filter } = state.address
  if (isLoading) return <p class="state">{filter === '' ? 'Loading your plants…' : 'Searching…'}</p>
  if (filter !== '') return <p class="state">{`No plant here contains “${shown(filter)}”.`}</p>
  if (hasPages) return <p class="state">There are no plants on this page any more.</p>
  return (
    <div class="state">
      <Picture />
      <p>You have no plants yet.</p>
      {state.canWrite && <Button text="Add your first plant" kind="primary" onClick={() => open('new')} />}
    </div>
  )
}
