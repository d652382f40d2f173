import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { listIds } from '../fixtures.ts'
import { openWithUser, runSql, WAL } from './files.ts'

const MIB = 1024 ** 2
/** 8 MiB plus a few of the largest writes. Each test writes several times as much. */
const WAL_MAX_BYTES = 24 * MIB

test('a list that ends before the last plant leaves no statement open, so that another process can empty the WAL', async () => {
  await using opened = await openWithUser()
  const { store, user, path } = opened
  for (const id of [1n, 2n, 3n]) await store.createPlant(user, { id, name: 'Fern' })

  expect((await store.listPlants(user, { after: undefined, limit: 1 })).isLast).toBe(false)

  using other = new Database(path)
  expect(other.query('pragma wal_checkpoint(truncate)').values()).toEqual([[0, 0, 0]])
})

describe('the WAL stays small', () => {
  test('while a user creates 20 plants of 4 MiB', async () => {
    await using opened = await openWithUser()
    const { store, user, path } = opened
    let largestBytes = 0

    for (let id = 0n; id < 20n; id++) {
      await store.createPlant(user, { id, name: 'x'.repeat(4 * MIB) })
      largestBytes = Math.max(largestBytes, statSync(path + WAL).size)
      // As between two requests.
      await nextTurn()
    }

    expect(largestBytes).toBeWithin(1, WAL_MAX_BYTES)
  })

  test('while a user with many plants is deleted', async () => {
    await using opened = await openWithUser()
    const { store, user, path } = opened
    runSql(
      path,
      `with recursive series (id) as (select 1 union all select id + 1 from series where id < 6000)
       insert into plants (user_id, id, name) select users.id, series.id, hex(zeroblob(4000)) from users, series`,
      'pragma wal_checkpoint(truncate)',
    )
    let largestBytes = 0
    const watching = setInterval(() => {
      largestBytes = Math.max(largestBytes, statSync(path + WAL).size)
    }, 1)

    const deleted = await store.deleteUser('me')
    clearInterval(watching)

    expect(deleted).toEqual({ plants: 6000, tokens: 1 })
    expect(await listIds(store, user)).toEqual([])
    expect(largestBytes).toBeWithin(1, WAL_MAX_BYTES)
  })
})
