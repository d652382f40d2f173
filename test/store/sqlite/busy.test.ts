import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { BUSY_TIMEOUT_MS } from '../../../src/store/sqlite/connection.ts'
import { SLACK_MS } from '../../support/slack.ts'
import { listIds } from '../fixtures.ts'
import { makeDatabaseFolder, openForTest, openWithUser, refusalOf } from './files.ts'

test('a write to a database that another process keeps locked is refused in time and never stored', async () => {
  await using opened = await openWithUser()
  const { store, user, failures, path } = opened
  await store.createPlant(user, { id: 1n, name: 'Fern' })
  const locker = lock(path)
  const startMs = performance.now()

  const created = store.createPlant(user, { id: 2n, name: 'Ivy' })

  await expect(created).rejects.toMatchObject({ kind: 'store_busy', outcomeIsUnknown: false })
  const waitedMs = performance.now() - startMs
  expect(waitedMs).toBeGreaterThanOrEqual(BUSY_TIMEOUT_MS / 2)
  expect(waitedMs).toBeLessThan(BUSY_TIMEOUT_MS + SLACK_MS)
  // Reads go on meanwhile.
  expect(await listIds(store, user)).toEqual([1n])
  locker.unlock()
  await store.createPlant(user, { id: 3n, name: 'Moss' })
  expect(await listIds(store, user)).toEqual([1n, 3n])
  expect(failures).toEqual([])
  await opened.close()
  await using reopened = await openForTest(path)
  expect(await listIds(reopened.store, user)).toEqual([1n, 3n])
})

test('a database that another process keeps locked is refused at the start, in one line', async () => {
  using files = makeDatabaseFolder()
  const other = new Database(files.path, { create: true, readwrite: true })
  other.run('begin exclusive')
  const startMs = performance.now()

  const refusal = await refusalOf(files.path)

  expect(refusal).toBe(`The database ${files.path} is locked by another process: end it.`)
  expect(performance.now() - startMs).toBeLessThan(2 * BUSY_TIMEOUT_MS + SLACK_MS)
  other.close(true)
})

/** Takes the write lock. */
function lock(path: string) {
  const db = new Database(path, { readwrite: true })
  db.run('begin immediate')
  return { unlock: () => db.close(true) }
}
