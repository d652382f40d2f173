import { expect, test } from 'bun:test'
import { openWriter } from '../../../src/store/sqlite/connection.ts'
import { NO_STAMP, NOTE, shareLastCommit, stampsOf } from '../../../src/store/sqlite/versions/last-commit.ts'
import { watchOwnCommits } from '../../../src/store/sqlite/versions/own-commits.ts'
import { watchWalIndex } from '../../../src/store/sqlite/versions/wal-index.ts'
import { makeDatabaseFolder, runSql } from './files.ts'

const INSERT = 'insert into texts values (1)'
const NEITHER: readonly [number, number] = [NO_STAMP, NO_STAMP]

const CAN_TELL = process.platform === 'linux'

test.skipIf(!CAN_TELL).each([
  ['exact where nobody else commits', [], [], true],
  ['exact where somebody else has committed before', [INSERT], [], true],
  ['none where somebody else commits before the stamp is read', [], [INSERT], false],
  ['none where somebody else has the lock to themselves again at once', [INSERT], [INSERT], false],
])('the stamps around a commit are %s', (_, before, after, areExact) => {
  using files = makeDatabaseFolder()
  using writer = openWriter(files.path, 'full')
  writer.run('create table texts (text)')
  const walIndex = watchWalIndex(files.path)
  if (walIndex === undefined) throw new Error('the WAL-index cannot be read')
  const lastCommit = shareLastCommit()
  const commits = watchOwnCommits(writer, walIndex, lastCommit)

  for (const work of [INSERT, undefined]) {
    runSql(files.path, ...before)
    const stampBefore = walIndex.stamp()
    writer.run('begin immediate')
    commits.begin()
    if (work !== undefined) writer.run(work)
    commits.end()
    expect([lastCommit.note[0], ...stampsOf(lastCommit)]).toEqual([NOTE.AWAITED, stampBefore, NO_STAMP])
    writer.run('commit')
    const stampAfter = walIndex.stamp()
    runSql(files.path, ...after)
    commits.noteCommitted()

    expect(lastCommit.note[0]).toBe(NOTE.MADE)
    expect(stampsOf(lastCommit)).toEqual(areExact ? [stampBefore, stampAfter] : NEITHER)
    expect(stampAfter === stampBefore).toBe(work === undefined)
  }
})

test.skipIf(!CAN_TELL)('a commit that changes no row, and says so, is one of its own', () => {
  using files = makeDatabaseFolder()
  using writer = openWriter(files.path, 'full')
  writer.run('create table texts (text)')
  const walIndex = watchWalIndex(files.path)
  if (walIndex === undefined) throw new Error('the WAL-index cannot be read')
  const lastCommit = shareLastCommit()
  const commits = watchOwnCommits(writer, walIndex, lastCommit)
  const stampBefore = walIndex.stamp()

  for (const changesNoRow of [true, false]) {
    writer.run('begin immediate')
    commits.begin()
    writer.run('pragma application_id = 1')
    commits.end({ changesNoRow })
    writer.run('commit')
    commits.noteCommitted()

    expect(stampsOf(lastCommit)).toEqual(changesNoRow ? [stampBefore, walIndex.stamp()] : NEITHER)
  }
})
