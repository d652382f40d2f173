// Tested in test/http/socket/page-lists.test.ts.
import { useEffect, useRef } from 'preact/hooks'
import { Refusal, refusalIn } from './client.ts'
import { countOf, shown } from './messages.ts'
import { Button } from './parts.tsx'
import { listPlants } from './plants.ts'
import { ALL_PLANTS } from './reading.ts'
import { matches, type Search } from './rows.ts'
import { set, state } from './state.ts'

/** A search shows at most so many plants, so that the memory of the tab stays bounded. */
const HITS_MAX = 500
/** A search begins by itself for a text of so many letters, after so long a pause, and reads so many pages. */
const LETTERS_MIN = 2
const PAUSE_MS = 300
const PAGES_MAX = 10

const NOTHING: Search = {
  ...{ filter: '', plants: [], after: '', end: '', searched: 0, pages: 0, next: ALL_PLANTS, isRunning: false },
  problem: '',
}

/** Reads pages and collects the plants in them that contain the text, so far as the search is still wanted. */
async function goOn(signal: AbortSignal, pagesMax: number): Promise<void> {
  const found = () => (signal.aborted ? undefined : state.search)
  for (let now = found(); now?.next && now.pages < pagesMax && now.plants.length < HITS_MAX; now = found()) {
    const page = await listPlants(now.next).catch(refusalIn)
    // Plants may have changed meanwhile.
    const search = found()
    if (search === undefined) return
    if (page instanceof Refusal) return set({ search: { ...search, isRunning: false, problem: page.message } })
    const { filter, plants, searched, pages } = search
    const hits = page.plants.filter((plant) => matches(plant, filter))
    set({
      search: {
        ...search,
        ...{ plants: [...plants, ...hits], end: page.end, next: page.next, pages: pages + 1 },
        searched: searched === undefined ? undefined : searched + page.plants.length,
      },
    })
  }
  const search = found()
  if (search) set({ search: { ...search, isRunning: false } })
}

/**
 * Searches all pages for a text. If it is longer than the one before and contains it, the search goes on with its hits. What
 * changes is applied to them, so that nothing is read again.
 */
export function useSearch(filter: string) {
  const { search = NOTHING } = state
  const job = useRef(new AbortController())
  const hits = search.plants.filter((plant) => matches(plant, filter))
  const stop = () => job.current.abort()
  const run = async (from: Search, pagesMax: number, pauseMs = 0) => {
    stop()
    job.current = new AbortController()
    const { signal } = job.current
    set({ search: { ...from, filter, isRunning: true, problem: '' } })
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
    await goOn(signal, pagesMax)
  }
  const isNone = state.search === undefined
  useEffect(() => {
    if ([...filter.trim()].length < LETTERS_MIN) return isNone ? undefined : set({ search: undefined })
    const isNarrower = search.filter !== '' && filter.toLowerCase().includes(search.filter.toLowerCase())
    if (search.filter !== filter || search.isRunning)
      void run(isNarrower ? { ...search, plants: hits } : NOTHING, PAGES_MAX, PAUSE_MS)
  }, [filter, isNone])
  useEffect(() => stop, [])
  return {
    ...search,
    plants: hits.slice(0, HITS_MAX),
    isFull: hits.length >= HITS_MAX,
    // Until the search has a hit or an end, those on the page that is shown are there.
    isFound: hits.length > 0 || (search.pages > 0 && !search.isRunning),
    searchRest: () => void run({ ...search, plants: hits }, Number.POSITIVE_INFINITY),
    stop() {
      stop()
      set({ search: { ...search, isRunning: false } })
    },
  }
}

/** How far a search is, and what goes on with it. */
export function SearchState(search: ReturnType<typeof useSearch>) {
  const { plants, searched, next, isFound, isFull, isRunning, problem, searchRest, stop } = search
  const { filter } = state.address
  const among = searched === undefined ? '' : ` among ${searched.toLocaleString('en')}`
  const found = `${countOf(plants.length)} with “${shown(filter)}”${among}`
  const isWhole = next === undefined
  const texts = [
    [!isFound, `On this page, plants with “${shown(filter)}”:`],
    [isFull, `The first ${found}. There may be more: search for a longer text.`],
    [isWhole, `On all pages: ${found}.`],
    [true, `${found} so far.`],
  ] as const
  const canGoOn = search.filter !== '' && !isRunning && !isWhole && !isFull
  return (
    <>
      <span aria-live="polite">{texts.find(([isSo]) => isSo)?.[1]}</span>
      {problem && <span role="alert">{`The search has ended. ${problem}`}</span>}
      {isRunning && <Button text="Stop searching" onClick={stop} />}
      {canGoOn && <Button text="Search the rest" onClick={searchRest} />}
    </>
  )
}
