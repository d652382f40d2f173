import { describe, expect, test } from 'bun:test'
import type { Store } from '../../../src/domain/store.ts'
import { GROUP_MAX_WRITES } from '../../../src/store/limits.ts'
import { ENTRY_MAX_GROUPS } from '../../../src/store/postgres/writing/writer.ts'
import { administer, lockTables, POSTGRES_SERVER, serverUrl, untilWaiting } from '../../support/postgres.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { lacks } from '../../support/requirement.ts'
import { createUser, listIds, outcomesOf } from '../fixtures.ts'
import { openDatabase } from './open-database.ts'

const fern = (id: number) => ({ id: BigInt(id), name: 'Fern' })

describe.skipIf(lacks(POSTGRES_SERVER))('the quota of plants on PostgreSQL', () => {
  test('holds for groups that others wrote after the ledger has lost an old entry', async () => {
    await using opened = await openDatabase({ quotaPlants: 5 })
    const { store, user, open } = opened
    const old = await open()
    for (const id of [11, 12]) await old.createPlant(user, fern(id))
    await store.createPlant(user, fern(1))
    await opened.run('update plantstore.writers set opened_at_ms = 0 where groups = 2')
    const entries = await opened.number('select count(*) from plantstore.writers')

    const late = await open()
    for (const id of [13, 14]) await late.createPlant(user, fern(id))

    expect(await opened.number('select count(*) from plantstore.writers')).toBe(entries)
    expect(await opened.number('select sum(groups) from plantstore.writers')).toBe(5)
    expect(await outcomesOf([store.createPlant(user, fern(2))])).toEqual(['quota_exceeded'])
  })

  test('gives each create of a group its own result', async () => {
    await using opened = await openDatabase({ quotaPlants: 2 })
    const { store, user } = opened
    const other = await createUser(store, 'other')
    await store.createPlant(user, fern(1))

    const creates = [1, 2, 3, 3, 2].map((id) => store.createPlant(user, fern(id)))
    const others = [1, 2, 3].map((id) => store.createPlant(other, fern(id)))
    const gone = [1, 2, 3].map((id) => store.createPlant(9999, fern(id)))

    expect(await outcomesOf([...creates, ...others, ...gone])).toEqual([
      ...['plant_exists', 'done', 'quota_exceeded', 'quota_exceeded', 'plant_exists'],
      ...['done', 'done', 'quota_exceeded', 'token_invalid', 'token_invalid', 'token_invalid'],
    ])
    expect(await opened.number('select sum(groups) from plantstore.writers')).toBeLessThanOrEqual(3)
  })

  test('is exact for four stores that fill it at once, with groups that count and groups that do not', async () => {
    const quotaPlants = 5 * GROUP_MAX_WRITES
    await using opened = await openDatabase({ quotaPlants })
    const stores = [opened.store, await opened.open(), await opened.open(), await opened.open()]

    const outcomes = await Promise.all(
      stores.map(async (store, side) => {
        const all: string[] = []
        for (let first = 0; first < quotaPlants; first += 100) {
          const ids = Array.from({ length: 100 }, (_, index) => 4 * (first + index) + side)
          all.push(...(await outcomesOf(ids.map((id) => store.createPlant(opened.user, fern(id))))))
        }
        return all
      }),
    )

    expect(new Set(outcomes.flat())).toEqual(new Set(['done', 'quota_exceeded']))
    expect(outcomes.flat().filter((outcome) => outcome === 'done')).toHaveLength(quotaPlants)
    expect(await listIds(opened.store, opened.user)).toHaveLength(quotaPlants)
  })

  test.each(['read committed', 'repeatable read', 'serializable'])(
    'counts a group of another store that has checked its user and is not committed, by default %s',
    async (isolation) => {
      await using opened = await openDatabase({ quotaPlants: 1 })
      const { user, url, name } = opened
      await opened.run(`alter database ${name} set default_transaction_isolation = '${isolation}'`)
      const store = await opened.open()
      const insert = `insert into plantstore.plants (user_id, id, name) values (${user}, 1, 'Fern')`
      const inserting = await runUncommitted(url, insert)

      const outcome = outcomesOf([store.createPlant(user, fern(2))])
      await untilWaiting(url, 1)
      await inserting.commit()

      expect(await outcome).toEqual(['quota_exceeded'])
    },
  )

  test('is exact if another store reaches it before a group that was sent without a count arrives', async () => {
    using proxy = startPostgresProxy(await serverUrl())
    let isProxied = true
    await using opened = await openDatabase({ quotaPlants: QUOTA, by: (url) => (isProxied ? proxy.by(url) : url) })
    isProxied = false
    const late = await prepareGroup(opened)
    const sent = Promise.withResolvers<void>()
    let held: object | undefined
    proxy.decide((from, bytes, connection) => {
      if (from === 'client' && bytes.includes('Fern')) held ??= connection
      if (held !== undefined) sent.resolve()
      return from === 'client' && connection === held ? 'hold' : 'pass'
    })

    const outcomes = late.createGroup()
    await sent.promise
    await late.fillByOther()
    proxy.decide(() => 'pass')
    proxy.release()

    expect(new Set(await outcomes)).toEqual(new Set(['quota_exceeded']))
    expect(await listIds(opened.store, opened.user)).toHaveLength(QUOTA)
  })

  test('is exceeded by one group at most if another store reaches it after the group has read the ledger', async () => {
    await using opened = await openDatabase({ quotaPlants: QUOTA })
    const { store, user, url } = opened
    const late = await prepareGroup(opened)
    const locking = await runUncommitted(url, 'select 1 from plantstore.writers where groups = 1 for update')

    const outcomes = late.createGroup()
    await untilWaiting(url, 1)
    await late.fillByOther()
    await locking.commit()
    const created = (await outcomes).filter((outcome) => outcome === 'done').length
    const later = [...(await late.createGroup()), ...(await late.createGroupByOther())]

    expect(new Set(later)).toEqual(new Set(['quota_exceeded']))
    expect(created).toBeLessThanOrEqual(GROUP_MAX_WRITES)
    expect(await listIds(store, user)).toHaveLength(QUOTA + created)
  })

  test('needs no new count when the entry of the writer gets a new id, and is exact then', async () => {
    const quotaPlants = ENTRY_MAX_GROUPS + 2 * GROUP_MAX_WRITES
    await using opened = await openDatabase({ quotaPlants })
    const { store, user, url, open } = opened
    for (let id = 1; id <= ENTRY_MAX_GROUPS; id++) await store.createPlant(user, fern(id))
    // To count, a store locks the user, which this lock keeps it from.
    const locking = await runUncommitted(url, `select 1 from plantstore.users where id = ${user} for key share`)

    await store.createPlant(user, fern(ENTRY_MAX_GROUPS + 1))
    await locking.commit()
    const other = await open()
    const rest = Array.from({ length: 2 * GROUP_MAX_WRITES }, (_, index) => fern(ENTRY_MAX_GROUPS + 2 + index))
    const outcomes = await outcomesOf(rest.map((plant) => other.createPlant(user, plant)))

    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(rest.length - 1)
    expect(await outcomesOf([store.createPlant(user, fern(0))])).toEqual(['quota_exceeded'])
    expect(await listIds(store, user)).toHaveLength(quotaPlants)
  })

  test('gives each create its own result if the connection is lost after the commit at the limit', async () => {
    using proxy = startPostgresProxy(await serverUrl())
    await using opened = await openDatabase({ quotaPlants: 2, by: proxy.by })
    const { store, user } = opened
    await store.createPlant(user, fern(1))
    let isCommitting = false
    let cuts = 0
    proxy.decide((from, bytes) => {
      isCommitting ||= from === 'client' && bytes.includes('COMMIT')
      return isCommitting && from === 'server' && cuts++ === 0 ? 'cut' : 'pass'
    })

    const outcomes = await outcomesOf(atLimit(store, user))

    expect(cuts).toBeGreaterThan(0)
    expect(outcomes).toEqual(RESULTS_AT_LIMIT)
    expect(await listIds(store, user)).toEqual([1n, 2n])
  })

  test('gives each create its own result if the connection is lost while it counts', async () => {
    await using opened = await openDatabase({ quotaPlants: 2 })
    const { store, user, url } = opened
    await store.createPlant(user, fern(1))
    const lock = await lockTables(url, 'plantstore.plants')

    const outcomes = outcomesOf(atLimit(store, user))
    await untilWaiting(url, 1)
    await opened.run(`select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`)
    await lock.release()

    expect(await outcomes).toEqual(RESULTS_AT_LIMIT)
    expect(await listIds(store, user)).toEqual([1n, 2n])
  })
})

/** Leaves room for three plants, a group, and the group of another store that may be under way. */
const QUOTA = 3 * GROUP_MAX_WRITES

/**
 * Prepares a group that the first store of a database sends without a count: it counted the plants after another store had
 * created the last ones. The other store has written two groups, and the first one has written one.
 */
async function prepareGroup({ store, user, open }: Awaited<ReturnType<typeof openDatabase>>) {
  const other = await open()
  let lastId = 0
  const create = (by: Store, count: number) =>
    outcomesOf(Array.from({ length: count }, () => by.createPlant(user, fern(++lastId))))
  for (const by of [other, other, store]) expect(await create(by, 1)).toEqual(['done'])
  return {
    createGroup: () => create(store, GROUP_MAX_WRITES),
    createGroupByOther: () => create(other, GROUP_MAX_WRITES),
    /** Creates plants by the other store until it refuses. The group is not stored yet. */
    async fillByOther() {
      const outcomes = await create(other, QUOTA)
      expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(QUOTA - 3)
      expect(await listIds(other, user)).toHaveLength(QUOTA)
    },
  }
}

/** Runs a statement in a transaction that lasts until `commit`. */
async function runUncommitted(url: string, statement: string) {
  const done = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const running = administer(url, (sql) =>
    sql.begin(async (inside) => {
      await inside.unsafe(statement)
      done.resolve()
      await released.promise
    }),
  )
  await Promise.race([done.promise, running])
  return {
    async commit() {
      released.resolve()
      await running
    },
  }
}

/** Creates, in one group, of a user who has plant 1 and may have one more. */
const atLimit = (store: Store, user: number) => [
  ...[1, 2, 3, 3].map((id) => store.createPlant(user, fern(id))),
  store.createPlant(9999, fern(1)),
]
const RESULTS_AT_LIMIT = ['plant_exists', 'done', 'quota_exceeded', 'quota_exceeded', 'token_invalid']
