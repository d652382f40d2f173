import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { nextTurn } from '../../../src/domain/next-turn.ts'
import { createUser, listIds } from '../fixtures.ts'
import { makeDatabaseFolder, openForTest, runSql, WAL } from './files.ts'

const MIB = 1024 ** 2
/** Some of the largest writes that these tests make: without checkpoints the WAL would hold all of them. */
const WAL_MAX_BYTES = 24 * MIB

describe('the WAL stays small over few writes that are large', () => {
  test('like plants of several MiB', async () => {
    using files = makeDatabaseFolder()
    await using opened = await openForTest(files.path)
    const user = await createUser(opened.store, 'me')
    const name = 'x'.repeat(4 * MIB)
    let largestBytes = 0

    for (let id = 0n; id < 20n; id++) {
      await opened.store.createPlant(user, { id, name })
      largestBytes = Math.max(largestBytes, statSync(files.path + WAL).size)
      // As between two requests.
      await nextTurn()
    }

    expect(largestBytes).toBeLessThan(WAL_MAX_BYTES)
  })

  test('like deleting a user with many plants', async () => {
    using files = makeDatabaseFolder()
    await using opened = await openForTest(files.path)
    const user = await createUser(opened.store, 'me')
    runSql(
      files.path,
      `with recursive series (id) as (select 1 union all select id + 1 from series where id < 6000)
       insert into plants (user_id, id, name) select users.id, series.id, hex(zeroblob(4000)) from users, series`,
      'pragma wal_checkpoint(truncate)',
    )
    let largestBytes = 0
    const watching = setInterval(() => {
      largestBytes = Math.max(largestBytes, statSync(files.path + WAL).size)
    }, 1)

    const deleted = await opened.store.deleteUser('me')
    clearInterval(watching)

    expect(deleted).toEqual({ plants: 6000, tokens: 1 })
    expect(await listIds(opened.store, user)).toEqual([])
    expect(largestBytes).toBeGreaterThan(0)
    expect(largestBytes).toBeLessThan(WAL_MAX_BYTES)
  })
})
