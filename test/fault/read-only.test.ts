import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EXT4_DISKS, MOUNTS, mountDisk, mountFragileDisk } from '../support/disk.ts'
import { makeFolder } from '../support/folder.ts'
import type { Random } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { RESTRICTED, SETPRIV } from '../support/restricted.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { FAILED_REFUSAL, FULL_REFUSAL, type History } from './history.ts'
import { expectRefusedStart } from './refused-start.ts'
import { refuseForAWhile, startDiskRound, untilRefusing } from './refused-writes.ts'
import { testRounds } from './rounds.ts'
import { fatalReasons } from './server-log.ts'
import { until, untilEnded } from './until.ts'

/** The most successes before the file system turns read-only. */
const BEFORE_MAX = 1000

describe('a file system that turns read-only', () => {
  testRounds(
    'between two syncs refuses writes while lists go on, and nothing acknowledged is missing',
    { short: 1, long: 10, needs: [EXT4_DISKS] },
    turnBetweenSyncs,
  )

  testRounds(
    'at any moment refuses writes or fails a sync, and nothing acknowledged before is missing',
    { short: 1, long: 10, needs: [EXT4_DISKS] },
    turnAtAnyMoment,
  )

  testRounds(
    'for a while refuses writes while lists go on; then writes go on, and nothing acknowledged is missing',
    { short: 1, long: 10, needs: [STRACE] },
    // strace fakes this: no file system with files open for writing can be made read-only and writable again.
    (random) => refuseForAWhile(['pwrite64', 'openat'], 'EROFS', random),
  )
})

/** Nothing is under way at this moment, so each round has the same result. */
async function turnBetweenSyncs(random: Random): Promise<void> {
  using disk = mountFragileDisk()
  await using round = await startDiskRound(random, disk.path)
  const { server, history, lists } = round
  // The last of many writes may have started a checkpoint. One more write puts something into the WAL.
  for (const count of [1 + random(BEFORE_MAX), 1]) {
    const load = round.startLoad()
    await load.acknowledged(count)
    await load.stop()
  }

  disk.turnReadOnly()
  const load = round.startLoad()
  await untilRefusing(round)

  expect(await lists.stop()).toEqual([200])
  expect(history.refusals()).toEqual([FULL_REFUSAL])
  // The last checkpoint fails, and the server says so. The WAL keeps its content.
  expect(await server.end()).toBe(3)
  expect(server.stderr()).toMatch(/^plantstore: The database failed, [^\n]*\n$/)
  expect(server.stderr()).not.toMatch(/backup|remove/i)
  await load.stop()
  disk.mountAgain()
  round.check()
}

async function turnAtAnyMoment(random: Random): Promise<void> {
  using disk = mountFragileDisk()
  await using round = await startDiskRound(random, disk.path)
  const { server, history } = round
  const load = round.startLoad()
  await load.acknowledged(1 + random(BEFORE_MAX))

  const turnedAt = history.now()
  disk.turnReadOnly()
  await until('a write is refused', () => history.refusals().length > 0)
  // After a failed sync the server cannot promise that nothing was stored.
  const hasFailed = history.refusals().includes(FAILED_REFUSAL)
  if (!hasFailed) await untilRefusing(round)
  expect(await (hasFailed ? untilEnded(server) : server.end())).toBe(3)

  expect(fatalReasons(server)).toHaveLength(hasFailed ? 1 : 0)
  expect(history.refusals().filter((refusal) => refusal !== FULL_REFUSAL)).toEqual(hasFailed ? [FAILED_REFUSAL] : [])
  await load.stop()
  round.checkCopy()
  disk.mountAgain()
  doubtSince(turnedAt, history)
  round.check()
}

/**
 * The disk itself may have lied. If its journal is aborted in the middle of a sync, ext4 sometimes reports the sync as done and
 * loses what was written (seen with Linux 6.18 for the last group commit, in one of forty rounds).
 */
function doubtSince(moment: number, history: History): void {
  for (const write of history.writes()) {
    if (write.outcome === 'acknowledged' && (write.answeredAt ?? 0) >= moment) write.outcome = 'unknown'
  }
}

describe.concurrent('a start refuses with one line and exit code 3', () => {
  test.each([
    ['is missing', 'missing', /does not exist/],
    ['is a file', 'file', /not a directory/],
  ])('a database whose directory %s', async (_, directory, message) => {
    using folder = makeFolder()
    writeFileSync(join(folder.path, 'file'), '')

    await expectRefusedStart(join(folder.path, directory, 'plantstore.db'), [message])

    expect(readdirSync(folder.path)).toEqual(['file'])
  })

  test.skipIf(lacks(MOUNTS))('a database on a read-only file system', async () => {
    using disk = mountDisk(1024 ** 2)
    const database = join(disk.path, 'plantstore.db')
    await createTokenIn(database)
    disk.makeReadOnly()

    await expectRefusedStart(database, [/is not writable/])
    await expectRefusedStart(join(disk.path, 'absent.db'), [/is not writable/])

    expect(readdirSync(disk.path)).toEqual(['plantstore.db'])
  })

  test.skipIf(lacks(SETPRIV))('a database whose directory the process may not write', async () => {
    using folder = makeFolder()
    const directory = join(folder.path, 'closed')
    mkdirSync(directory, 0o500)

    await expectRefusedStart(join(directory, 'plantstore.db'), [/is not writable/], RESTRICTED)

    expect(readdirSync(directory)).toEqual([])
  })

  test.skipIf(lacks(SETPRIV)).each([
    ['only read', 0o400],
    ['only write', 0o200],
    ['neither read nor write', 0o000],
  ])('a database that the process may %s', async (_, mode) => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database)
    chmodSync(database, mode)

    await expectRefusedStart(database, [/cannot be read and written/], RESTRICTED)
  })
})
