import { expect, test } from 'bun:test'
import { migrate } from '../../../src/engine/sqlite/migrate.ts'
import { PLANT_FORMAT } from '../../../src/store/sqlite/format.ts'
import { COUNTED_USERS_MAX, openQuota } from '../../../src/store/sqlite/writing/quota.ts'
import { makeDatabaseFolder, makeWithWriter } from './files.ts'

test('the quota of plants remembers the counts of 10000 users, and counts anew with one more', () => {
  using files = makeDatabaseFolder()
  using writer = makeWithWriter(files.path)
  migrate(writer, files.path, PLANT_FORMAT)
  writer.run('pragma foreign_keys = off')
  const quota = openQuota(writer, 1)
  const users = Array.from({ length: COUNTED_USERS_MAX }, (_, index) => index + 1)
  expect(users.filter(quota.isUsedUp)).toEqual([])
  // A change that nobody records shows what is remembered.
  writer.run("insert into plants (user_id, id, name) values (1, 1, 'Fern')")

  expect(quota.isUsedUp(1)).toBe(false)
  expect(quota.isUsedUp(COUNTED_USERS_MAX + 1)).toBe(false)
  expect(quota.isUsedUp(1)).toBe(true)
})
