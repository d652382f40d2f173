import { describe, expect, test } from 'bun:test'
import type { Store } from '../../../src/domain/store.ts'
import { STORE_DEADLINES } from '../../../src/store/database.ts'
import { READS_MAX } from '../../../src/store/postgres/connections.ts'
import { lockTables, POSTGRES_SERVER, runScript, untilWaiting } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { listAll, listIds, outcomesOf, rejectionOf } from '../fixtures.ts'
import { openDatabase } from './open-database.ts'

/** Reads of whole tables. Commands wait for them. */
const LONG_READS: readonly ((store: Store) => Promise<unknown>)[] = [
  (store) => store.listUsers(),
  (store) => store.listTokens(),
  (store) => store.listTokens({ userName: 'me' }),
  (store) => store.checkIntegrity(),
]

/** Another function that measures tables. */
const MEASURE = 'create function pg_catalog.pg_total_relation_size(regclass) returns int8'

describe.skipIf(lacks(POSTGRES_SERVER))('reads of a PostgreSQL store', () => {
  test('of whole tables may take longer than those of requests, which are refused after their timeout', async () => {
    await using opened = await openDatabase({ deadlines: STORE_DEADLINES })
    const { store, url, user, open } = opened
    const expected = await Promise.all(LONG_READS.map((read) => read(store)))
    // A store of a command has one connection for reads.
    const stores = await Promise.all(LONG_READS.map(open))
    const lock = await lockTables(url, 'plantstore.users, plantstore.tokens, plantstore.plants')

    const reads = Promise.all(LONG_READS.map((read, index) => read(stores[index] ?? store)))
    await untilWaiting(url, LONG_READS.length)
    // The list begins after the long reads, and is refused before they end.
    const refused = await rejectionOf(listAll(store, user))
    await lock.release()

    expect(refused).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: false })
    expect(await reads).toEqual(expected)
  })

  test('are refused above READS_MAX at once, also after all of them have failed', async () => {
    await using opened = await openDatabase()
    const { store } = opened
    // Reads of whole tables have time enough on a busy machine.
    const readAll = () => outcomesOf(Array.from({ length: READS_MAX + 1 }, () => store.listUsers()))
    const rename = (from: string, to: string) => opened.run(`alter table plantstore.${from} rename to ${to}`)

    expect(READS_MAX).toBe(4096)
    await rename('users', 'elsewhere')
    expect(await readAll()).toEqual([...Array(READS_MAX).fill('store_failed'), 'store_busy'])
    await rename('elsewhere', 'users')
    expect(await readAll()).toEqual([...Array(READS_MAX).fill('done'), 'store_busy'])
    expect(await store.listUsers()).toMatchObject([{ name: 'me', plants: 0, tokens: 1 }])
  })

  test('that have no connection make a store not ready that can write, until they have one again', async () => {
    await using opened = await openDatabase()
    const { store, user, server, name } = opened
    const allow = (isAllowed: boolean) => runScript(server, `alter database ${name} allow_connections ${isAllowed}`)
    await store.createPlant(user, { id: 1n, name: 'Fern' })
    await listAll(store, user)

    await allow(false)
    await runScript(
      server,
      `select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
        where datname = '${name}' and query like '%*/select %'`,
    )
    const refused = await rejectionOf(store.checkReady())
    await store.createPlant(user, { id: 2n, name: 'Ivy' })
    await allow(true)

    expect(refused).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: false })
    await store.checkReady()
    expect(await listIds(store, user)).toEqual([1n, 2n])
  })

  test.each([
    ['does not know the function', ''],
    ['refuses the user', `${MEASURE} language plpgsql as 'begin raise insufficient_privilege; end'`],
    ['counts 0', `${MEASURE} return 0`],
    ['counts null', `${MEASURE} return null::int8`],
  ])('leave out only the size if the database %s', async (_, script) => {
    await using opened = await openDatabase()
    const { store } = opened
    const before = await store.measure(0)
    await opened.run(`alter function pg_catalog.pg_total_relation_size rename to hidden; ${script}`)

    expect(before).toEqual({ databaseBytes: expect.any(Number), walBytes: 0, expiringTokens: 0 })
    expect(await store.measure(0)).toEqual({ walBytes: 0, expiringTokens: 0 })
  })
})
