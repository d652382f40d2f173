import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openWriter } from '../../../src/store/sqlite/driver.ts'
import { checkpoints } from '../../../src/store/sqlite/writing/checkpoints.ts'
import { listIds } from '../fixtures.ts'
import { makeDatabaseFolder, openWithUser, runSql, WAL } from './files.ts'

const MIB = 1024 ** 2
/** Each test writes several times as much. */
const WAL_MAX_BYTES = 8 * MIB
/** The same plus a few of the largest writes. */
const LARGE_WAL_MAX_BYTES = 24 * MIB

test('a list that ends before the last plant leaves no statement open, so that another process can empty the WAL', async () => {
  await using opened = await openWithUser()
  const { store, user, path } = opened
  for (const id of [1n, 2n, 3n]) await store.createPlant(user, { id, name: 'Fern' })

  expect((await store.listPlants(user, { after: undefined, limit: 1 })).isLast).toBe(false)

  using other = new Database(path)
  expect(other.query('pragma wal_checkpoint(truncate)').values()).toEqual([[0, 0, 0]])
})

describe('the WAL stays small', () => {
  test.each([
    ['5000 small plants', 5000, 'Fern', WAL_MAX_BYTES],
    ['20 plants of 4 MiB', 20, 'x'.repeat(4 * MIB), LARGE_WAL_MAX_BYTES],
  ])('while a user creates %s', async (_, count, name, walMaxBytes) => {
    await using opened = await openWithUser()
    const { store, user, path } = opened
    let largestBytes = 0

    for (let id = 0; id < count; id++) {
      await store.createPlant(user, { id: BigInt(id), name })
      largestBytes = Math.max(largestBytes, statSync(path + WAL).size)
      // As between two requests.
      await nextTurn()
    }

    expect(largestBytes).toBeWithin(1, walMaxBytes)
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
    expect(largestBytes).toBeWithin(1, LARGE_WAL_MAX_BYTES)
  })

  test('because it begins anew after a checkpoint', () => {
    using files = makeDatabaseFolder()
    using writer = openWriter(files.path, 'full')
    writer.run('create table texts (text text)')
    const wal = checkpoints(writer, (error) => error)
    let largestBytes = 0

    for (let count = 0; count < 3000; count++) {
      writer.run('insert into texts values (hex(zeroblob(4000)))')
      wal.runIfDue()
      largestBytes = Math.max(largestBytes, statSync(files.path + WAL).size)
    }

    expect(largestBytes).toBeWithin(WAL_MAX_BYTES / 2, WAL_MAX_BYTES)
  })
})
