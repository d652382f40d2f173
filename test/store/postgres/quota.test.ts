import { describe, expect, test } from 'bun:test'
import type { Store } from '../../../src/domain/store.ts'
import { GROUP_MAX_WRITES } from '../../../src/engine/group-queue.ts'
import { POSTGRES_SERVER, runUncommitted, serverUrl, untilWaiting } from '../../support/postgres.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { lacks } from '../../support/requirement.ts'
import { listIds, outcomesOf } from '../fixtures.ts'
import { openDatabase } from './open-database.ts'

const fern = (id: number) => ({ id: BigInt(id), name: 'Fern' })

describe.skipIf(lacks(POSTGRES_SERVER))('the quota of plants on PostgreSQL', () => {
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
      await inserting.release()

      expect(await outcome).toEqual(['quota_exceeded'])
    },
  )

  test('is exact if another store fills it while a group that has counted waits', async () => {
    const quotaPlants = 3 * GROUP_MAX_WRITES
    await using opened = await openDatabase({ quotaPlants })
    const { store, user, url, open } = opened
    const other = await open()
    let lastId = 0
    const create = (by: Store, count: number) =>
      outcomesOf(Array.from({ length: count }, () => by.createPlant(user, fern(++lastId))))
    // The group of the store is its second one, and that of the other store its third one.
    for (const by of [other, other, store]) expect(await create(by, 1)).toEqual(['done'])
    const locking = await runUncommitted(url, 'select 1 from plantstore.writers where groups = 1 for update')

    const counted = create(store, GROUP_MAX_WRITES)
    await untilWaiting(url, 1)
    const filling = create(other, quotaPlants)
    await Promise.race([filling, untilWaiting(url, 2)])
    await locking.release()
    await Promise.all([counted, filling])
    // Some creates may have waited too long.
    await create(other, quotaPlants)

    expect(await listIds(store, user)).toHaveLength(quotaPlants)
    expect([...(await create(store, 1)), ...(await create(other, 1))]).toEqual(['quota_exceeded', 'quota_exceeded'])
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
    const { store, user } = opened
    await store.createPlant(user, fern(1))

    expect(await opened.loseConnectionOf(() => outcomesOf(atLimit(store, user)))).toEqual(RESULTS_AT_LIMIT)
    expect(await listIds(store, user)).toEqual([1n, 2n])
  })
})

/** Creates, in one group, of a user who has plant 1 and may have one more. */
const atLimit = (store: Store, user: number) => [
  ...[1, 2, 3, 3].map((id) => store.createPlant(user, fern(id))),
  store.createPlant(9999, fern(1)),
]
const RESULTS_AT_LIMIT = ['plant_exists', 'done', 'quota_exceeded', 'quota_exceeded', 'token_invalid']
