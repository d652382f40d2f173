// Tested in test/http/page/page-lists.test.ts.
import { useEffect } from 'preact/hooks'
import { Refusal, refusalIn } from './client.ts'
import { because, countOf, shown } from './messages.ts'
import { Button } from './parts.tsx'
import { ALL_LIMIT, listPlants } from './plants.ts'
import { matches, type Search } from './rows.ts'
import { set, state } from './state.ts'

/** A search shows at most so many plants, so that the memory of the tab stays bounded. */
const HITS_MAX = 500
/** A search begins after so long a pause, and reads so many pages by itself. */
const PAUSE_MS = 300
const PAGES_MAX = 10

const NOTHING: Search = { filter: '', plants: [], after: '', end: '', searched: 0, pages: 0, job: undefined }

const isWhole = ({ pages, end }: Search) => pages > 0 && end === ''

const stop = () => set({ search: state.search && { ...state.search, job: undefined } })

/** Reads further pages and collects the plants in them that contain the text, until another search begins or one stops it. */
async function run(begun: Search, filter: string, pagesMax: number, pauseMs = 0): Promise<void> {
  const job = {}
  set({ search: { ...begun, filter, job } })
  await new Promise((resolve) => setTimeout(resolve, pauseMs))
  for (let from = state.search; from?.job === job; from = state.search) {
    if (isWhole(from) || from.pages >= pagesMax || from.plants.length >= HITS_MAX) return stop()
    const page = await listPlants(ALL_LIMIT, from.end).catch(refusalIn)
    // Plants may have changed meanwhile.
    const { search } = state
    if (search?.job !== job) return
    if (page instanceof Refusal) {
      set({ notice: because('The search has ended', page.message) })
      return stop()
    }
    const plants = [...search.plants, ...page.plants.filter((plant) => matches(plant, filter))]
    const searched = search.searched === undefined ? undefined : search.searched + page.plants.length
    const now = { ...search, plants, searched, pages: search.pages + 1, end: page.end }
    set({ search: now, ...(isWhole(now) && { total: searched }) })
  }
}

/**
 * Searches all pages for a text. If it is longer than the one before and contains it, the search goes on with its hits. What
 * changes is applied to them, so that nothing is read again.
 */
export function useSearch(filter: string) {
  const { search = NOTHING } = state
  const hits = search.plants.filter((plant) => matches(plant, filter))
  const isNone = state.search === undefined
  useEffect(() => {
    if (filter.trim() === '') return isNone ? undefined : set({ search: undefined })
    const isNarrower = search.filter !== '' && filter.toLowerCase().includes(search.filter.toLowerCase())
    if (search.filter !== filter)
      void run(isNarrower ? { ...search, plants: hits } : NOTHING, filter, PAGES_MAX, PAUSE_MS)
  }, [filter, isNone])
  return {
    ...search,
    plants: hits.slice(0, HITS_MAX),
    isFull: hits.length >= HITS_MAX,
    // Until the search has a hit or an end, those on the page that is shown are there.
    isFound: hits.length > 0 || (search.pages > 0 && !search.job),
  }
}

/** How far a search is, and what goes on with it. */
export function SearchState(search: ReturnType<typeof useSearch>) {
  const { plants, searched, isFound, isFull, job } = search
  const { filter } = state.address
  const among = searched === undefined ? '' : ` among ${searched.toLocaleString('en')}`
  const found = `${countOf(plants.length)} with “${shown(filter)}”${among}`
  const texts = [
    [!isFound, `On this page, plants with “${shown(filter)}”:`],
    [isFull, `The first ${found}. There may be more: search for a longer text.`],
    [isWhole(search), `On all pages: ${found}.`],
    [true, `${found} so far.`],
  ] as const
  const canGoOn = search.filter !== '' && !job && !isWhole(search) && !isFull
  return (
    <>
      <span aria-live="polite">{texts.find(([isSo]) => isSo)?.[1]}</span>
      {job && <Button text="Stop searching" onClick={stop} />}
      {canGoOn && <Button text="Search the rest" onClick={() => run(search, filter, Number.POSITIVE_INFINITY)} />}
    </>
  )
}
