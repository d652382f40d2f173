import { useEffect, useRef, useState } from 'preact/hooks'
import type { Address, Go } from './address.ts'
import { type Client, CODES, isSame, refusalIn, type Session } from './client.ts'
import type { Plant } from './fields.ts'
import { countOf, describePlant } from './messages.ts'
import { DELETED } from './storage.ts'

/** What all parts of the page share. */
export interface Shared extends Session {
  readonly garden: Garden
  readonly address: Address
  readonly go: Go
  /** Opens the form for a plant; `undefined` if the token may not write, or the browser cannot keep a plant meanwhile. */
  readonly edit: ((plant: Plant) => void) | undefined
}

/** What the user can do to plants, and what has come of it. Everything that it claims is what the server has answered. */
export type Garden = ReturnType<typeof useGarden>

export function useGarden(client: Client) {
  const [notice, tell] = useState('')
  const [deleted, setDeleted] = useState<readonly Plant[]>(() => DELETED.read() ?? [])
  /** Grows with each change after which lists must be read again. */
  const [changes, setChanges] = useState(0)
  /** The id of the plant whose row gets the focus once it is there. */
  const [focused, setFocused] = useState('')
  /** The ids of plants that were added. A new count may still be on its way. */
  const [added, setAdded] = useState<readonly string[]>([])
  useEffect(() => void DELETED.write(deleted), [deleted])

  const readAgain = () => setChanges((count) => count + 1)
  /** Does something that may fail, and tells why it did. */
  const attempt = (act: () => Promise<unknown>) => act().catch((error) => tell(refusalIn(error).message))
  const { busy, whileBusy } = useBusy()
  const change = (plants: readonly Plant[], act: () => Promise<unknown>) => {
    void whileBusy(plants, () => {
      tell('')
      return attempt(act)
    })
  }
  return {
    ...{ notice, tell, deleted, added, busy, changes, readAgain, focused, setFocused, attempt, change, whileBusy },

    async add(plant: Plant): Promise<void> {
      tell('')
      await client.create(plant)
      tell(`Added “${plant.name}”.`)
      setAdded((before) => [...before, plant.id])
      readAgain()
    },

    /** Deletes plants that are still as they are shown. Each deleted one can be created again. */
    remove: (plants: readonly Plant[]) =>
      change(plants, async () => {
        const isDone = await removeAll(client, plants, tell, (plant) => setDeleted((before) => [plant, ...before]))
        if (!isDone) readAgain()
      }),

    /** Creates deleted plants again, in any order. The last one gets the focus. */
    restore: (plants: readonly Plant[]) =>
      change(plants, async () => {
        let problem = ''
        for (const [index, plant] of plants.entries()) {
          const refusal = await client.create(plant).catch(refusalIn)
          const isTaken = refusal?.code === CODES.exists
          const isThere = isTaken && isSame((await client.get(plant.id))?.plant ?? {}, plant)
          if (refusal !== undefined && !isThere) problem = `${describePlant(plant)} is not restored. ${refusal.message}`
          tell(problem || `Restored ${nameOf(plants.slice(0, index + 1))}.`)
          if (refusal !== undefined && !isTaken) break
          if (refusal !== undefined && !isThere) continue
          setDeleted((before) => before.filter((each) => each !== plant))
          setFocused(plant.id)
        }
        readAgain()
      }),
  }
}

/** The ids of the plants that are being changed. */
function useBusy() {
  const [busy, setBusy] = useState<ReadonlySet<string>>(new Set())
  const working = useRef(busy)
  /** Does something to plants, unless one of them is being changed: a second click must not do it again. */
  const whileBusy = <T>(plants: readonly Plant[], act: () => Promise<T>): Promise<T> | undefined => {
    const ids = new Set(plants.map(({ id }) => id))
    const set = (now: ReadonlySet<string>) => {
      working.current = now
      setBusy(now)
    }
    if (!ids.isDisjointFrom(working.current)) return undefined
    set(ids.union(working.current))
    return act().finally(() => set(new Set(working.current).difference(ids)))
  }
  return { busy, whileBusy }
}

/** Deletes plants one by one until one is refused, and tells what has come of it. Returns whether all were as they were shown. */
async function removeAll(
  client: Client,
  plants: readonly Plant[],
  tell: (text: string) => void,
  onDeleted: (plant: Plant) => void,
): Promise<boolean> {
  const outcome: Record<'deleted' | 'gone' | 'changed', Plant[]> = { deleted: [], gone: [], changed: [] }
  let problem = ''
  for (const plant of plants) {
    const removal = await client.remove(plant).catch(refusalIn)
    if (removal === 'deleted') onDeleted(plant)
    if (typeof removal === 'string') outcome[removal].push(plant)
    else if (!(removal instanceof Error)) outcome.changed.push(removal)
    // Without a code the user has given up the request.
    else problem = `${removal.message}${removal.code === 0 ? ' The plant may be deleted: try again to see it.' : ''}`
    if (problem !== '') break
  }
  const { deleted, gone, changed } = outcome
  const sentences = [
    deleted.length > 0 && `Deleted ${nameOf(deleted)}.`,
    gone.length > 0 && `Somebody else had deleted ${nameOf(gone)} already.`,
    changed.length > 0 &&
      `Not deleted, because somebody else has changed it: now it is ${changed.map(describePlant).join(', ')}.`,
    problem,
  ]
  tell(sentences.filter(Boolean).join(' '))
  return gone.length + changed.length === 0
}

/** Like: “Monstera” (evergreen), or 2 plants. */
const nameOf = (plants: readonly Plant[]): string =>
  plants.length === 1 && plants[0] ? describePlant(plants[0]) : countOf(plants.length)
