import { describe, expect, test } from 'bun:test'
import { countWrites } from '../../../src/http/statistics.ts'
import { QUEUE_MAX_TEXT_LENGTH, QUEUE_MAX_WRITES } from '../../../src/store/limits.ts'
import { lockTables, POSTGRES_SERVER, untilWaiting } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { createUser, listIds, outcomesOf } from '../fixtures.ts'
import { openDatabase } from './open-database.ts'

const BUSY = 'store_busy'
const TEXT = 'x'.repeat(QUEUE_MAX_TEXT_LENGTH / 16)

describe.skipIf(lacks(POSTGRES_SERVER))('the queue of a PostgreSQL store', () => {
  test('holds QUEUE_MAX_WRITES writes, and refuses one more', async () => {
    await using opened = await openQueue()
    const { store, user } = opened
    const writer = await opened.holdWriter()

    const waiting = outcomesOf(
      // The writer holds the first write.
      Array.from({ length: QUEUE_MAX_WRITES }, (_, id) => store.createPlant(user, { id: BigInt(id), name: 'Fern' })),
    )
    const refusals = opened.refusals()
    await writer.release()
    const outcomes = await waiting

    expect(QUEUE_MAX_WRITES).toBe(16384)
    expect(refusals).toEqual({ queue_full: 1, locked: 0 })
    expect(outcomes.at(-1)).toBe(BUSY)
    expect(outcomes.slice(0, -1).filter((outcome) => outcome !== 'done' && outcome !== BUSY)).toEqual([])
    const done = outcomes.flatMap((outcome, id) => (outcome === 'done' ? [BigInt(id)] : []))
    expect(await listIds(store, user)).toEqual(done)
    // On a busy machine some writes wait too long.
    expect(opened.refusals()).toEqual({ queue_full: 1, locked: QUEUE_MAX_WRITES - 1 - done.length })
    await store.createPlant(user, { id: BigInt(QUEUE_MAX_WRITES), name: 'Fern' })
  })

  test('holds text of QUEUE_MAX_TEXT_LENGTH, and refuses one more character', async () => {
    await using opened = await openQueue()
    const { store, user } = opened
    const writer = await opened.holdWriter()

    const waiting = outcomesOf([
      ...Array.from({ length: 16 }, (_, id) =>
        store.createPlant(user, { id: BigInt(id), name: TEXT.slice(1), tag: 'x' }),
      ),
      store.createPlant(user, { id: 16n, name: 'x' }),
      store.createPlant(user, { id: 17n, name: '', tag: 'x' }),
      // A full queue still takes writes without text.
      store.createPlant(user, { id: 18n, name: '' }),
      store.deletePlant(user, 18n),
    ])
    const refusals = opened.refusals()
    await writer.release()
    const outcomes = await waiting

    expect(QUEUE_MAX_TEXT_LENGTH).toBe(16 * 1024 * 1024)
    expect(refusals).toEqual({ queue_full: 2, locked: 0 })
    expect(outcomes.slice(16, 18)).toEqual([BUSY, BUSY])
    const stored = await listIds(store, user)
    expect(stored).not.toContain(16n)
    expect(stored).not.toContain(17n)
    await store.createPlant(user, { id: 16n, name: 'x' })
  })

  test('writes many equal writes of one plant with few statements, and gives each its own result', async () => {
    await using opened = await openQueue()
    const { store, user } = opened
    const many = Array.from({ length: 1000 })

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
    const { locked } = opened.refusals()
    await writer.release()

    expect(refused).toEqual([BUSY, BUSY, BUSY])
    expect(locked).toBeGreaterThanOrEqual(3)
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
