import { expect, test } from 'bun:test'
import { openWriter } from '../../../src/store/sqlite/connection.ts'
import {
  COMMIT_STATE,
  shareLastCommit,
  UNKNOWN_VERSION,
  versionsOf,
} from '../../../src/store/sqlite/versions/last-commit.ts'
import { watchOwnCommits } from '../../../src/store/sqlite/versions/own-commits.ts'
import { watchWalIndex } from '../../../src/store/sqlite/versions/wal-index.ts'
import { makeDatabaseFolder, runSql } from './files.ts'

const INSERT = 'insert into texts values (1)'
const NEITHER: readonly [number, number] = [UNKNOWN_VERSION, UNKNOWN_VERSION]

const CAN_TELL = process.platform === 'linux'

test.skipIf(!CAN_TELL).each([
  ['exact if nobody else commits', [], [], true],
  ['exact if another process has committed before', [INSERT], [], true],
  ['unknown if another process commits before the version is read', [], [INSERT], false],
  ['unknown if another process commits before and after', [INSERT], [INSERT], false],
])('the versions that are recorded around a commit are %s', (_, before, after, areExact) => {
  using files = makeDatabaseFolder()
  using writer = openWriter(files.path, 'full')
  writer.run('create table texts (text)')
  const walIndex = watchWalIndex(files.path)
  if (walIndex === undefined) throw new Error('the WAL-index cannot be read')
  const lastCommit = shareLastCommit()
  const commits = watchOwnCommits(writer, walIndex, lastCommit)

  for (const work of [INSERT, undefined]) {
    runSql(files.path, ...before)
    const versionBefore = walIndex.version()
    writer.run('begin immediate')
    commits.begin()
    if (work !== undefined) writer.run(work)
    commits.end()
    expect([lastCommit.state[0], ...versionsOf(lastCommit)]).toEqual([
      COMMIT_STATE.ANNOUNCED,
      versionBefore,
      UNKNOWN_VERSION,
    ])
    writer.run('commit')
    const versionAfter = walIndex.version()
    runSql(files.path, ...after)
    commits.recordCommitted()

    expect(lastCommit.state[0]).toBe(COMMIT_STATE.RECORDED)
    expect(versionsOf(lastCommit)).toEqual(areExact ? [versionBefore, versionAfter] : NEITHER)
    expect(versionAfter === versionBefore).toBe(work === undefined)
  }
})

test.skipIf(!CAN_TELL)('a commit that changes the file but no row counts as own if the writer says so', () => {
  using files = makeDatabaseFolder()
  using writer = openWriter(files.path, 'full')
  writer.run('create table texts (text)')
  const walIndex = watchWalIndex(files.path)
  if (walIndex === undefined) throw new Error('the WAL-index cannot be read')
  const lastCommit = shareLastCommit()
  const commits = watchOwnCommits(writer, walIndex, lastCommit)
  const versionBefore = walIndex.version()

  for (const changesNoRow of [true, false]) {
    writer.run('begin immediate')
    commits.begin()
    writer.run('pragma application_id = 1')
    commits.end({ changesNoRow })
    writer.run('commit')
    commits.recordCommitted()

    expect(versionsOf(lastCommit)).toEqual(changesNoRow ? [versionBefore, walIndex.version()] : NEITHER)
  }
})
