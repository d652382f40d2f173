// Tested in test/http/socket/page-tools.test.ts.
import { useEffect, useState } from 'preact/hooks'
import { listPlants, Refusal, refusalIn, toJson } from './client.ts'
import type { Plant } from './fields.ts'
import { countOf } from './messages.ts'
import { set, state } from './state.ts'

/** The first query of a list that is read as a whole. */
export const ALL_PLANTS = '?limit=1000&include=id'
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
  // A change that was stored shows that the server answers again.
  useEffect(() => {
    if (found.problem) set({ changes: state.changes + 1 })
  }, [state.updates])
  return found
}

/** Reads again what is shown. */
export const refresh = () => set({ changes: state.changes + 1, refreshes: state.refreshes + 1, notice: '' })

/** Lets the browser store all plants as JSON Lines. It keeps the parts of a blob outside of the memory of the page. */
export async function download(): Promise<void> {
  state.job?.stop()
  let isStopped = false
  const stop = () => {
    isStopped = true
    set({ job: undefined })
  }
  const queries = [ALL_PLANTS]
  const parts: Blob[] = []
  let count = 0
  for (const query of queries) {
    set({ job: { text: `Downloaded ${countOf(count)} so far.`, stop } })
    const page = await listPlants(query).catch(refusalIn)
    if (isStopped) return
    if (page instanceof Refusal) return set({ job: undefined, notice: page.message })
    count += page.plants.length
    parts.push(new Blob(page.plants.map((plant) => `${toJson(plant)}\n`)))
    if (page.next) queries.push(page.next)
  }
  const href = URL.createObjectURL(new Blob(parts, { type: 'application/jsonl' }))
  Object.assign(document.createElement('a'), { href, download: 'plants.jsonl' }).click()
  setTimeout(() => URL.revokeObjectURL(href), DOWNLOAD_OPENS_MS)
  set({ job: undefined, notice: `Downloaded ${countOf(count)}.` })
}

/** The plants that were read when there were `from` updates as they are now, and those that `isIn` belong to them, too. */
export function updated(plants: readonly Plant[], from: number, isIn: (id: string) => boolean = () => false) {
  const now = new Map(plants.map((plant) => [plant.id, plant]))
  const last = new Map(state.updates.slice(from).map(({ id, plant }) => [id, plant]))
  for (const [id, plant] of last) {
    if (plant === undefined) now.delete(id)
    else if (now.has(id) || isIn(id)) now.set(id, plant)
  }
  return [...now.values()]
}
