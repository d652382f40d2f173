import { describe, expect, test } from 'bun:test'
import { QUEUE_MAX_TEXT_LENGTH, QUEUE_MAX_WRITES } from '../../../src/store/limits.ts'
import { openStore } from '../../../src/store/open.ts'
import { WRITE_TIMEOUT_MS } from '../../../src/store/postgres/writer.ts'
import { administer, makeDatabase, POSTGRES_IS_SKIPPED, POSTGRES_NOTE } from '../../support/postgres.ts'
import { createUser, listIds } from '../fixtures.ts'

const BUSY = 'store_busy'
const TEXT = 'x'.repeat(QUEUE_MAX_TEXT_LENGTH / 16)

describe.skipIf(POSTGRES_IS_SKIPPED)(`the plants that wait to be written to a server${POSTGRES_NOTE}`, () => {
  test('are as many as QUEUE_MAX_WRITES, and one more is refused and not stored', async () => {
    await using opened = await openUsed()
    const { store, user } = opened

    const outcomes = await outcomesOf(
      Array.from({ length: QUEUE_MAX_WRITES + 1 }, (_, id) =>
        store.createPlant(user, { id: BigInt(id), name: 'Fern' }),
      ),
    )

    expect(outcomes.at(-1)).toBe(BUSY)
    expect(outcomes.slice(0, -1).filter((outcome) => outcome !== 'done' && outcome !== BUSY)).toEqual([])
    const done = outcomes.flatMap((outcome, id) => (outcome === 'done' ? [BigInt(id)] : []))
    expect(await listIds(store, user)).toEqual(done)
  })

  test('have as much text as QUEUE_MAX_TEXT_LENGTH, and one character more is refused and not stored', async () => {
    await using opened = await openUsed()
    const { store, user } = opened

    const outcomes = await outcomesOf([
      ...Array.from({ length: 16 }, (_, id) => store.createPlant(user, { id: BigInt(id), name: TEXT })),
      store.createPlant(user, { id: 16n, name: 'x' }),
    ])

    expect(outcomes[16]).toBe(BUSY)
    expect(await listIds(store, user)).not.toContain(16n)
  })

  test('of one key are told apart from the first, however many they are, with few statements', async () => {
    await using opened = await openUsed()
    const { store, user } = opened
    const many = Array.from({ length: 1000 })

    const creates = outcomesOf(many.map(() => store.createPlant(user, { id: 1n, name: 'Fern' })))
    const deletes = outcomesOf(many.map(() => store.deletePlant(user, 1n)))
    const last = store.createPlant(user, { id: 1n, name: 'Ivy' })

    expect(await creates).toEqual(many.map((_, index) => (index === 0 ? 'done' : 'plant_exists')))
    expect(await deletes).toEqual(many.map((_, index) => (index === 0 ? 'done' : 'plant_not_found')))
    expect(await last).toBeUndefined()
    expect(await opened.groups()).toBeLessThan(10n)
  })

  test('wait no longer than they may, behind one that takes too long, and are not stored later', async () => {
    await using opened = await openUsed()
    const { store, user } = opened
    await store.createPlant(user, { id: 0n, name: 'Fern' })
    const released = Promise.withResolvers<void>()
    const locked = Promise.withResolvers<void>()
    const locking = administer(opened.url, (sql) =>
      sql.begin(async (transaction) => {
        await transaction.unsafe(`insert into plantstore.plants (user_id, id, name) values (${user}, 1, 'Moss')`)
        locked.resolve()
        await released.promise
      }),
    )
    await locked.promise

    const first = store.createPlant(user, { id: 1n, name: 'Fern' })
    await Bun.sleep(50)
    const second = outcomesOf([store.createPlant(user, { id: 2n, name: 'Fern' })])
    // Only time takes a turn away.
    await Bun.sleep(WRITE_TIMEOUT_MS + 200)
    released.resolve()
    await locking

    expect(await outcomesOf([first])).toEqual(['plant_exists'])
    expect(await second).toEqual([BUSY])
    expect(await listIds(store, user)).toEqual([0n, 1n])
  })
})

async function openUsed() {
  const database = await makeDatabase()
  const store = await openStore(database.url, (error) => {
    throw error
  })
  const user = await createUser(store, 'me')
  return {
    store,
    user,
    url: database.url,
    /** How many groups were written. */
    groups: () =>
      administer(
        database.url,
        async (sql) =>
          (await sql.unsafe('select sum(groups)::int8 from plantstore.writers').values())[0]?.[0] as bigint,
      ),
    async [Symbol.asyncDispose]() {
      await store.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

const outcomesOf = async (writes: readonly Promise<unknown>[]): Promise<string[]> =>
  (await Promise.allSettled(writes)).map((result) => (result.status === 'fulfilled' ? 'done' : result.reason.kind))
