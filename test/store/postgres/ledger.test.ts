import { describe, expect, setSystemTime, test } from 'bun:test'
import { ENTRY_MAX_GROUPS } from '../../../src/store/postgres/writing/writer.ts'
import { administer, lockTables, POSTGRES_SERVER, serverUrl, untilWaiting } from '../../support/postgres.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { lacks } from '../../support/requirement.ts'
import { listIds, outcomesOf } from '../fixtures.ts'
import { openDatabase } from './open-database.ts'

/** Longer than a new entry lets older ones stay. */
const TWO_HOURS_MS = 7_200_000

const fern = (id: number) => ({ id: BigInt(id), name: 'Fern' })

describe.skipIf(lacks(POSTGRES_SERVER))('the ledger of a PostgreSQL store', () => {
  test('has an entry that takes ENTRY_MAX_GROUPS groups under one id, and one more group under another id', async () => {
    await using opened = await openDatabase()
    const { store, user, url } = opened
    const entries = () =>
      administer(url, async (sql) => [...(await sql`select id, groups::int4 from plantstore.writers`.values())])
    await store.createPlant(user, fern(1))
    const [[id] = []] = await entries()

    for (let group = 2; group <= ENTRY_MAX_GROUPS; group++) await store.createPlant(user, fern(group))
    const atLimit = await entries()
    await store.createPlant(user, fern(ENTRY_MAX_GROUPS + 1))
    const beyond = await entries()

    expect(ENTRY_MAX_GROUPS).toBe(1000)
    expect(atLimit).toEqual([[id, ENTRY_MAX_GROUPS]])
    expect(beyond).toEqual([[expect.not.stringContaining(id), 1]])
  })

  test('keeps the entry of a server that has been up for hours while a group of it is under way', async () => {
    await using opened = await openDatabase()
    const { store, user, url, open } = opened
    const other = await open()
    await store.createPlant(user, fern(1))
    using _ = laterBy(TWO_HOURS_MS)
    const lock = await lockTables(url, 'plantstore.plants')

    const created = store.createPlant(user, fern(2))
    await untilWaiting(url, 1)
    // The other store adds an entry, which deletes old ones. Then its group waits, too.
    const createdByOther = other.createPlant(user, fern(3))
    await untilWaiting(url, 2)
    await opened.endWaiting()
    await lock.release()

    expect(await outcomesOf([created, createdByOther])).toEqual(['done', 'done'])
    expect(await listIds(store, user)).toEqual([1n, 2n, 3n])
  })

  test('lets a store write whose entry another store has deleted because of its age', async () => {
    await using opened = await openDatabase()
    const { store, user, open } = opened
    const other = await open()
    await store.createPlant(user, fern(1))
    await opened.run('update plantstore.writers set opened_at_ms = 0')

    await other.createPlant(user, fern(2))
    const afterOther = await opened.number('select count(*) from plantstore.writers')
    await store.createPlant(user, fern(3))

    expect(afterOther).toBe(1)
    expect(await listIds(store, user)).toEqual([1n, 2n, 3n])
    expect(await opened.number('select count(*) from plantstore.writers')).toBe(2)
  })

  test.each(['client', 'server'] as const)(
    'writes each group once if the connection is lost at bytes of the %s while an entry is replaced',
    async (side) => {
      using proxy = startPostgresProxy(await serverUrl())
      await using opened = await openDatabase({ by: proxy.by })
      const { store, user } = opened
      await store.createPlant(user, fern(1))
      using _ = laterBy(TWO_HOURS_MS)
      let isSent = false
      let cuts = 0
      proxy.decide((from, bytes) => {
        isSent ||= from === 'client' && bytes.includes('read committed')
        return isSent && from === side && cuts++ === 0 ? 'cut' : 'pass'
      })

      await store.createPlant(user, fern(2))
      // A statement that was held now comes too late.
      proxy.release()
      await store.createPlant(user, fern(3))

      expect(cuts).toBeGreaterThan(0)
      expect(await listIds(store, user)).toEqual([1n, 2n, 3n])
      expect(await opened.number('select max(groups) from plantstore.writers')).toBe(2)
    },
  )
})

/** Lets the clock of this process be later, until it is disposed of. */
function laterBy(ms: number): Disposable {
  setSystemTime(Date.now() + ms)
  return { [Symbol.dispose]: () => void setSystemTime() }
}
