import { describe, expect, test } from 'bun:test'
import { countWrites } from '../../../src/http/statistics.ts'
import { lockTables, POSTGRES_SERVER, untilWaiting } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { createUser, listIds, outcomesOf } from '../fixtures.ts'
import { openDatabase } from './open-database.ts'

const BUSY = 'store_busy'

describe.skipIf(lacks(POSTGRES_SERVER))('the queue of a PostgreSQL store', () => {
  test('writes many equal writes of one plant with few statements, and gives each its own result', async () => {
    await using opened = await openQueue()
    const { store, user } = opened
    const many = Array.from({ length: 250 })

    const creates = outcomesOf(many.map(() => store.createPlant(user, { id: 1n, name: 'Fern' })))
    const deletes = outcomesOf(many.map(() => store.deletePlant(user, 1n)))
    const last = store.createPlant(user, { id: 1n, name: 'Ivy' })

    expect(await creates).toEqual(many.map((_, index) => (index === 0 ? 'done' : 'plant_exists')))
    expect(await deletes).toEqual(many.map((_, index) => (index === 0 ? 'done' : 'plant_not_found')))
    expect(await last).toBeUndefined()
    expect(await opened.number('select sum(groups) from plantstore.writers')).toBeLessThan(10)
  })

  test('refuses writes behind one that takes too long, counts each of them, and stores none later', async () => {
    await using opened = await openQueue()
    const { store, user } = opened
    const writer = await opened.holdWriter()

    const refused = await outcomesOf([1, 2, 3].map(() => store.createPlant(user, { id: 2n, name: 'Fern' })))
    const { queue_full } = opened.refusals()
    await writer.release()

    expect(refused).toEqual([BUSY, BUSY, BUSY])
    expect(queue_full).toBe(3)
    expect(await listIds(store, user)).toEqual([])
  })
})

/** A store whose refusals are counted, and whose writer of creates can be held. */
async function openQueue() {
  const observer = countWrites()
  const opened = await openDatabase({ observer })
  const { store, url } = opened
  return {
    ...opened,
    refusals: () => ({ ...observer.refusals }),
    /** Keeps the writer of creates busy with a plant of another user, which has no text, until `release`. */
    async holdWriter() {
      const other = await createUser(store, 'other')
      const lock = await lockTables(url, 'plantstore.plants')
      const held = store.createPlant(other, { id: 0n, name: '' })
      await untilWaiting(url, 1)
      return {
        async release() {
          await lock.release()
          // On a busy machine it has waited too long, too.
          await outcomesOf([held])
        },
      }
    },
  }
}
