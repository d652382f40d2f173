import { Database } from 'bun:sqlite'
import { expect, spyOn, test } from 'bun:test'
import { openWriter } from '../../../src/store/sqlite/driver.ts'
import { fileIdentity } from '../../../src/store/sqlite/files/file-system.ts'
import { migrate } from '../../../src/store/sqlite/migrate.ts'
import { shareChanges, shareCheckTime } from '../../../src/store/sqlite/versions.ts'
import { openGroupCommit } from '../../../src/store/sqlite/writing/group-commit.ts'
import type { Answer, Message, Sent } from '../../../src/store/sqlite/writing/messages.ts'
import { COUNTED_USERS_MAX, openQuota } from '../../../src/store/sqlite/writing/quota.ts'
import { FERN } from '../fixtures.ts'
import { makeDatabaseFolder } from './files.ts'

test('the quota of plants remembers the counts of 10000 users, and counts anew with one more', () => {
  using files = makeDatabaseFolder()
  using writer = openWriter(files.path, 'normal')
  migrate(writer, files.path)
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

test('a writer of SQLite prepares a statement that counts plants only if it has a quota', () => {
  using files = makeDatabaseFolder()
  const writer = openWriter(files.path, 'normal')
  migrate(writer, files.path)
  writer.run("insert into users (id, name, created_at_ms) values (1, 'me', 0)")
  writer.close()
  const texts = (id: bigint, quotaPlants?: number) => {
    using prepare = spyOn(Database.prototype, 'prepare')
    const sent: Sent[] = []
    const options = { path: files.path, identity: fileIdentity(files.path), durability: 'normal', quotaPlants } as const
    const commit = openGroupCommit({ ...options, changes: shareChanges() }, (report) => sent.push({ report }))
    const client = { checkedAtMs: shareCheckTime(), port: { postMessage: (answer: Answer) => void sent.push(answer) } }
    const take = (message: string) => commit([[client, message]])
    take(JSON.stringify({ group: [['createPlant', 1, `${id}`, ...FERN]], nowMs: 0 } satisfies Message))
    take(JSON.stringify({ order: 'close' } satisfies Message))
    expect(sent).toEqual([{ writes: 1, commitMs: expect.any(Number) }, 'done'])
    return prepare.mock.calls.map(([text]) => text)
  }
  const counts = (all: readonly string[]) => all.filter((text) => text.includes('count('))

  expect(counts(texts(1n))).toEqual([])
  expect(counts(texts(2n, 2))).toEqual([expect.stringContaining('from plants where user_id')])
})
