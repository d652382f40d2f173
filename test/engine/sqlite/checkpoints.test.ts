import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { listIds } from '../../store/fixtures.ts'
import { openWithUser, runSql, WAL } from '../../store/sqlite/files.ts'
import { addPlants } from '../../support/many-plants.ts'

/** 8 MiB plus a few of the largest batches. The test writes several times as much. */
const WAL_MAX_BYTES = 24 * 1024 ** 2

test('a list that ends before the last plant leaves no statement open, so that another process can empty the WAL', async () => {
  await using opened = await openWithUser()
  const { store, user, path } = opened
  for (const id of [1n, 2n, 3n]) await store.createPlant(user, { id, name: 'Fern' })

  expect((await store.listPlants(user, { after: undefined, limit: 1 })).isLast).toBe(false)

  using other = new Database(path)
  expect(other.query('pragma wal_checkpoint(truncate)').values()).toEqual([[0, 0, 0]])
})

test('the WAL stays small while a user with many plants is deleted', async () => {
  await using opened = await openWithUser()
  const { store, user, path } = opened
  addPlants(path, 6000, { nameLength: 8000 })
  runSql(path, 'pragma wal_checkpoint(truncate)')
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
