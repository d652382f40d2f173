import { useEffect, useRef, useState } from 'preact/hooks'
import type { Address } from './address.ts'
import { type Refusal, refusalIn } from './client.ts'
import { FIELD_NAMES, type Plant } from './fields.ts'
import type { Shared } from './garden.ts'
import { freeId } from './messages.ts'

/** Plants on a page. */
const PAGE_PLANTS = 50
/** Up to so many plants are counted without being asked. */
const COUNTED_PLANTS = 10 * PAGE_PLANTS
/** A search shows at most so many plants, so that the memory of the tab stays bounded. */
const HITS_MAX = 500

/** The first query of a list that is read as a whole. */
export const ALL_PLANTS = '?limit=1000&include=id'

/** A page as it was read, and the address that it was read for. */
export interface Listing extends Pick<Address, 'after' | 'page'> {
  readonly plants: readonly Plant[]
  /** The id behind which the next page begins. */
  readonly next: string | undefined
}

/** Reads the page of an address, and reads it again after each change. The last page that was read stays meanwhile. */
export function useListing({ client, address: { after, page }, garden: { changes, deleted } }: Shared) {
  const [listing, setListing] = useState<Listing>()
  const [state, setState] = useState({ isLoading: true, problem: '' })
  const [attempts, setAttempts] = useState(0)
  // What is deleted when the page arrives.
  const ghosts = useRef(deleted)
  ghosts.current = deleted
  useEffect(() => {
    let isCurrent = true
    const read = async () => {
      const found = await client.list(`?limit=${PAGE_PLANTS}${after && `&after=${after}`}&include=id`)
      if (!isCurrent) return
      const next = new URLSearchParams(found.next).get('after') ?? undefined
      setListing((before) => {
        const plants = before?.after === after ? withGhosts(found.plants, before.plants, ghosts.current) : found.plants
        return { plants, next, after, page }
      })
      setState({ isLoading: false, problem: '' })
    }
    setState({ isLoading: true, problem: '' })
    read().catch((error) => isCurrent && setState({ isLoading: false, problem: refusalIn(error).message }))
    return () => {
      isCurrent = false
    }
  }, [client, after, changes, attempts])
  return { listing, ...state, retry: () => setAttempts(attempts + 1) }
}

/** The plants of a page with those that were deleted from it, so that the others stay in their rows. */
function withGhosts(plants: readonly Plant[], before: readonly Plant[], deleted: readonly Plant[]): readonly Plant[] {
  const ids = new Set(plants.map(({ id }) => id))
  const ghosts = before.filter((plant) => deleted.includes(plant) && !ids.has(plant.id))
  return [...plants, ...ghosts].sort(byId)
}

const byId = (one: Plant, other: Plant): number => (BigInt(one.id) < BigInt(other.id) ? -1 : 1)

/** The plants in the order of a field; with a minus before its name in the reverse order. */
export function sorted(plants: readonly Plant[], sort: string): readonly Plant[] {
  const field = sort.replace('-', '')
  if (!FIELD_NAMES.includes(field)) return plants
  const byText = (one: Plant, other: Plant) => (one[field] ?? '').localeCompare(other[field] ?? '')
  const ascending = [...plants].sort(field === 'id' ? byId : byText)
  return sort.startsWith('-') ? ascending.reverse() : ascending
}

/** Whether one of the texts of a plant contains a text, in any letter case. */
export const matches = (plant: Plant, filter: string): boolean =>
  Object.values(plant).some((text) => text.toLowerCase().includes(filter.toLowerCase()))

/** What a search over all pages has found so far. */
export interface Search {
  readonly hits: readonly Plant[]
  readonly searched: number
  readonly state: 'running' | 'whole' | 'stopped' | 'full' | Refusal
}

/** Searches all pages while there is a text to search for. Returns what it has found, and a function that stops it. */
export function useSearch({ client, garden: { changes } }: Shared, filter: string) {
  const [search, setSearch] = useState<Search>()
  const stop = useRef(() => {})
  useEffect(() => {
    const hits: Plant[] = []
    let searched = 0
    let isOver = false
    const show = (state: Search['state']) => {
      if (!isOver) setSearch({ hits: [...hits], searched, state })
      isOver ||= state !== 'running'
    }
    const run = async (): Promise<Search['state']> => {
      for await (const plants of client.pages(ALL_PLANTS)) {
        if (isOver) break
        searched += plants.length
        hits.push(...plants.filter((plant) => matches(plant, filter)).slice(0, HITS_MAX - hits.length))
        if (hits.length === HITS_MAX) return 'full'
        show('running')
      }
      return 'whole'
    }
    stop.current = () => show('stopped')
    if (filter === '') return
    show('running')
    void run().catch(refusalIn).then(show)
    return () => {
      isOver = true
    }
  }, [client, filter, changes])
  return { search, stop: () => stop.current() }
}

interface Tally {
  /** The number of plants, with those that were deleted in this tab. */
  readonly counted: number
  /** Ids that are taken, and the largest one. */
  readonly ids: ReadonlySet<string>
  readonly last: string | undefined
}

/**
 * The number of plants, and an id that none of them has. If there are too many to count them unasked, the number is empty, and the
 * id follows the plants that are known. Deleted plants do not make it count again.
 */
export function useTally({ client, garden: { changes, deleted, added, tell } }: Pick<Shared, 'client' | 'garden'>) {
  const [tally, setTally] = useState<Partial<Tally>>()
  const ghosts = useRef(deleted)
  ghosts.current = deleted
  const count = async (isAsked: boolean, isCurrent = () => true) => {
    const ids = new Set(ghosts.current.map(({ id }) => id))
    let last: string | undefined
    let found = 0
    for await (const plants of client.pages(ALL_PLANTS)) {
      if (!isCurrent()) return
      found += plants.length
      last = plants.at(-1)?.id ?? last
      if (found > COUNTED_PLANTS && !isAsked) return setTally(({ counted: _, ...known } = {}) => known)
      if (isAsked) tell(`Counted ${found.toLocaleString('en')} plants so far.`)
      else for (const { id } of plants) ids.add(id)
    }
    if (isAsked) tell('')
    setTally({ counted: found + ghosts.current.length, ids, last })
  }
  useEffect(() => {
    let isCurrent = true
    // The list beside it tells what is wrong.
    count(false, () => isCurrent).catch(refusalIn)
    return () => {
      isCurrent = false
    }
  }, [client, changes])
  const { counted, ids, last } = tally ?? {}
  return {
    count: counted === undefined ? undefined : counted - deleted.length,
    freeId: ids && freeId(new Set([...ids, ...added]), last),
    countAll: tally && counted === undefined ? () => count(true) : undefined,
  }
}
