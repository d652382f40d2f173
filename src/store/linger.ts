import { setImmediate as nextTurn } from 'node:timers/promises'

/** Turns of the event loop for which a group of writes waits at most. Each turn may bring the writes of further requests. */
const LINGER_TURNS_MAX = 2

/**
 * Waits while each turn of the event loop brings more writes for the next group: a larger group costs less per write.
 */
export async function linger(countWaiting: () => number): Promise<void> {
  let before = -1
  for (let turn = 0; turn < LINGER_TURNS_MAX && before < countWaiting(); turn++) {
    before = countWaiting()
    await nextTurn()
  }
}
