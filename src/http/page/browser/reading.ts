import { useEffect, useState } from 'preact/hooks'
import { listPlants, refusalIn, toJson } from './client.ts'
import type { Plant } from './fields.ts'
import { countOf, freeId } from './messages.ts'
import { set, state } from './state.ts'

/** The first query of a list that is read as a whole. */
const ALL_PLANTS = '?limit=1000&include=id'
/** An id is suggested up to so many plants: ten pages. */
const SUGGESTED_PLANTS = 500
/** How long a browser may take to open the file. */
const DOWNLOAD_OPENS_MS = 60_000

/** Reads something at first, when `inputs` change, and after each change of plants. What was read before stays meanwhile. */
export function useRead<T>(read: () => Promise<T>, ...inputs: readonly unknown[]) {
  const [found, setFound] = useState<{ readonly value?: T; readonly problem?: string; readonly isLoading: boolean }>({
    isLoading: true,
  })
  useEffect(() => {
    let isCurrent = true
    setFound(({ problem: _, ...before }) => ({ ...before, isLoading: true }))
    read()
      .then(
        (value) => ({ value }),
        (error) => ({ problem: refusalIn(error).message }),
      )
      .then((now) => isCurrent && setFound((before) => ({ ...before, ...now, isLoading: false })))
    return () => {
      isCurrent = false
    }
  }, [...inputs, state.changes])
  return found
}

/** Reads all plants, page by page, until it is stopped. */
export async function readAll({ signal }: AbortController, onPage: (plants: readonly Plant[]) => void): Promise<void> {
  for (let query: string | undefined = ALL_PLANTS; query !== undefined && !signal.aborted; ) {
    const { plants, next }: Awaited<ReturnType<typeof listPlants>> = await listPlants(query)
    if (!signal.aborted) onPage(plants)
    query = next
  }
}

/** Lets the browser store all plants as JSON Lines. It keeps the parts of a blob outside of the memory of the page. */
export async function download(): Promise<void> {
  const job = new AbortController()
  const stop = () => {
    job.abort()
    set({ job: undefined })
  }
  const parts: Blob[] = []
  let count = 0
  const add = (plants: readonly Plant[]) => {
    count += plants.length
    parts.push(new Blob(plants.map((plant) => `${toJson(plant)}\n`)))
    set({ job: { text: `Downloaded ${countOf(count)} so far.`, stop } })
  }
  state.job?.stop()
  add([])
  const refusal = await readAll(job, add).catch(refusalIn)
  if (job.signal.aborted) return
  stop()
  if (refusal) return set({ notice: refusal.message })
  const href = URL.createObjectURL(new Blob(parts, { type: 'application/jsonl' }))
  Object.assign(document.createElement('a'), { href, download: 'plants.jsonl' }).click()
  setTimeout(() => URL.revokeObjectURL(href), DOWNLOAD_OPENS_MS)
  set({ notice: `Downloaded ${countOf(count)}.` })
}

/** Reads which ids are taken at first and after each change, unless the plants are too many. */
export function useTakenIds(): void {
  useEffect(() => {
    const job = new AbortController()
    const found: Plant[] = []
    const add = (plants: readonly Plant[]) => {
      found.push(...plants)
      if (found.length > SUGGESTED_PLANTS) job.abort()
    }
    const show = () => {
      if (!job.signal.aborted) set({ takenIds: { all: new Set(found.map(({ id }) => id)), last: found.at(-1)?.id } })
      else if (found.length > SUGGESTED_PLANTS) set({ takenIds: {} })
    }
    // The list beside it tells what is wrong.
    readAll(job, add).then(show, refusalIn)
    return () => job.abort()
  }, [state.changes])
}

/** An id that no plant has, as far as it is known; deleted ones may come back. */
export function suggestedId(): string {
  const { all, last } = state.takenIds
  return all ? freeId(new Set([...all, ...state.deleted.map(({ id }) => id)]), last) : ''
}
