// Tested in test/http/socket/page-lists.test.ts.
import { useEffect, useRef, useState } from 'preact/hooks'
import { listPlants, Refusal, refusalIn } from './client.ts'
import type { Plant } from './fields.ts'
import { countOf, shown } from './messages.ts'
import { Button } from './parts.tsx'
import { ALL_PLANTS, updated } from './reading.ts'
import { state } from './state.ts'

/** A search shows at most so many plants, so that the memory of the tab stays bounded. */
const HITS_MAX = 500
/** A search begins by itself for a text of so many letters, after so long a pause, and reads so many pages. */
const LETTERS_MIN = 2
const PAUSE_MS = 300
const PAGES_MAX = 10

/** What a search over all pages has found so far. */
interface Search {
  readonly filter: string
  /** How many updates there were when it began. */
  readonly from: number
  readonly refreshes: number
  readonly hits: readonly Plant[]
  readonly searched: number
  /** How many pages were read for that. */
  readonly pages: number
  /** The query of the next page. Nothing if there is none. */
  readonly next: string | undefined
  readonly state: 'running' | 'ended' | Refusal
}

const NOTHING: Search = {
  filter: '',
  from: 0,
  refreshes: 0,
  hits: [],
  searched: 0,
  pages: 0,
  next: ALL_PLANTS,
  state: 'ended',
}

/** Whether one of the texts of a plant contains a text, in any letter case. */
export const matches = (plant: Plant, filter: string): boolean =>
  Object.values(plant).some((text) => text.toLowerCase().includes(filter.toLowerCase()))

/**
 * Searches all pages for a text. If it is longer than the one before and contains it, the search goes on with its hits. Changes
 * of this tab do not begin it anew, because it knows of them.
 */
export function useSearch(filter: string) {
  const [search, setSearch] = useState(NOTHING)
  const job = useRef(new AbortController())
  const hits = updated(search.hits, search.from).filter((plant) => matches(plant, filter))

  const run = async (from: Search, pagesMax: number, pauseMs = 0) => {
    job.current.abort()
    job.current = new AbortController()
    const { signal } = job.current
    let found: Search = { ...from, filter, from: state.updates.length, refreshes: state.refreshes }
    const show = (change: Partial<Search>) => {
      found = { ...found, ...change }
      if (!signal.aborted) setSearch(found)
    }
    show({ state: 'running' })
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
    while (found.pages < pagesMax && found.next && found.hits.length < HITS_MAX && !signal.aborted) {
      const page = await listPlants(found.next).catch(refusalIn)
      if (page instanceof Refusal) return show({ state: page })
      const hits = [...found.hits, ...page.plants.filter((plant) => matches(plant, filter))]
      show({ hits, searched: found.searched + page.plants.length, pages: found.pages + 1, next: page.next })
    }
    show({ state: 'ended' })
  }
  useEffect(() => {
    if ([...filter.trim()].length < LETTERS_MIN) return setSearch(NOTHING)
    const isNarrower =
      search.refreshes === state.refreshes &&
      search.filter !== '' &&
      filter.toLowerCase().includes(search.filter.toLowerCase())
    void run(isNarrower ? { ...search, hits } : NOTHING, PAGES_MAX, PAUSE_MS)
    return () => job.current.abort()
  }, [filter, state.refreshes])
  const isSearching = search.state === 'running'
  return {
    ...search,
    hits: hits.slice(0, HITS_MAX),
    isFull: hits.length >= HITS_MAX,
    isSearching,
    // Until the search has a hit or an end, those on the page that is shown are there.
    isFound: hits.length > 0 || (search.searched > 0 && !isSearching),
    searchRest: () => void run({ ...search, hits }, Number.POSITIVE_INFINITY),
    stop() {
      job.current.abort()
      setSearch((found) => ({ ...found, state: 'ended' }))
    },
  }
}

/** How far a search is, and what goes on with it. */
export function SearchState(search: ReturnType<typeof useSearch>) {
  const { hits, searched, next, isFound, isFull, isSearching, searchRest, stop } = search
  const { filter } = state.address
  const found = `${countOf(hits.length)} with “${shown(filter)}” among ${searched.toLocaleString('en')}`
  const isWhole = next === undefined
  const texts = [
    [!isFound, `On this page, plants with “${shown(filter)}”:`],
    [isFull, `The first ${found}. There may be more: search for a longer text.`],
    [isWhole, `On all pages: ${found}.`],
    [true, `${found} so far.`],
  ] as const
  const canGoOn = search.filter !== '' && !isSearching && !isWhole && !isFull
  return (
    <>
      <span aria-live="polite">{texts.find(([isSo]) => isSo)?.[1]}</span>
      {search.state instanceof Refusal && <span role="alert">{`The search has ended. ${search.state.message}`}</span>}
      {isSearching && <Button text="Stop searching" onClick={stop} />}
      {canGoOn && <Button text="Search the rest" onClick={searchRest} />}
    </>
  )
}
