// Tested in test/http/socket/page-tools.test.ts.
import { useEffect, useRef, useState } from 'preact/hooks'
import { INT64_MAX } from '../domain/int64.ts'
import { refusalIn } from './client.ts'
import { listPlants } from './plants.ts'
import { state } from './state.ts'

/** So many requests look for the largest id, each for so many plants. */
const LOOKS_MAX = 32
const LOOK_PLANTS = 20

/** An id for a new plant, once it is found, and the search for it. `suggestBehind` suggests the first free id behind another. */
export function useSuggestedId(isNew: boolean) {
  const [suggested, setSuggested] = useState('')
  const search = useRef(Promise.resolve(''))
  useEffect(() => {
    let isWanted = isNew
    if (isNew) search.current = findId(() => isWanted).catch((error) => refusalIn(error) && '')
    // Who types an id already must not find another one in the field.
    void search.current.then((id) => document.activeElement?.id === 'id' || setSuggested(id))
    return () => {
      isWanted = false
    }
  }, [])
  return { suggested, search, suggestBehind: (id: string) => setSuggested(freeFrom(BigInt(id) + 1n)) }
}

/**
 * Finds the id after the largest one. It looks behind the list that is shown, doubles until there is nothing, and halves what is
 * between. If that does not find the largest id, or none can be larger, it takes the first free one.
 */
export async function findId(isWanted: () => boolean): Promise<string> {
  const lastShown = BigInt(state.list?.plants.at(-1)?.id ?? 0)
  let low = lastShown > 0n ? lastShown : 0n
  let high: bigint | undefined
  for (let looks = 0, at = low; looks < LOOKS_MAX && isWanted(); looks++) {
    const { plants, end } = await listPlants(LOOK_PLANTS, `${at}`)
    const last = plants.at(-1)
    if (last) low = BigInt(last.id)
    else high = at
    if (low === high || (last && !end)) return freeFrom(low + 1n)
    at = high === undefined ? 2n * low + 1n : (low + high) / 2n
    if (at > INT64_MAX) at = INT64_MAX
  }
  return freeFrom(INT64_MAX + 1n)
}

/** The first id from this one on, or from 1 if none is so large, that no shown plant has, and none that Undo puts back. */
function freeFrom(from: bigint): string {
  const taken = new Set([...(state.list?.plants ?? []), ...state.undo].map(({ id }) => id))
  let id = from > INT64_MAX ? 1n : from
  while (taken.has(`${id}`)) id = id < INT64_MAX ? id + 1n : 1n
  return `${id}`
}
