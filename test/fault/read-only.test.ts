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
import type { History } from './history.ts'
import { judgeLeft } from './life.ts'
import { expectRefusedStart } from './refused-start.ts'
import { REFUSED, refuseForAWhile, setScene, untilRefusing } from './refused-writes.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { fatalReasons, until, untilEnded } from './watch.ts'

/** Successes before the file system turns read-only, at most. */
const BEFORE_MAX = 1000
/** How a write is refused when a sync has failed. */
const FAILED = '503 50302, Retry-After: 1'

describe.skipIf(lacks(EXT4_DISKS))('a file system that turns read-only', () => {
  test(
    'between two syncs has writes refused while lists go on, and nothing acknowledged is missing',
    () => runRounds(rounds(1, 10), (random) => turnBetweenSyncs(random)),
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'at any moment has writes refused, or a sync fail, and nothing acknowledged before is missing',
    () => runRounds(rounds(1, 10), (random) => turnAtAnyMoment(random)),
    ROUNDS_TIMEOUT_MS,
  )
})

describe.skipIf(lacks(STRACE))('a file system that is read-only for a while', () => {
  test(
    'has writes refused while lists go on; after it all is well, and nothing acknowledged is missing',
    // Files that are open for writing keep a file system from being made read-only: strace says that it is.
    () => runRounds(rounds(1, 10), (random) => refuseForAWhile(['pwrite64', 'openat'], 'EROFS', random)),
    ROUNDS_TIMEOUT_MS,
  )
})

/** The moment of a load that is ever the same: nothing is under way. */
async function turnBetweenSyncs(random: Random): Promise<void> {
  using disk = mountFragileDisk()
  await using scene = await setScene(disk.path, random)
  const { server, answers, lists, history } = scene
  await scene.store(1 + random(BEFORE_MAX))
  // Should the last of these have had the WAL brought into the database, there is something in it again.
  await scene.store(1)

  disk.turnReadOnly()
  const load = scene.startLoad()
  await untilRefusing(scene)

  expect(await lists.stop()).toEqual([200])
  expect(answers.refusals()).toEqual([REFUSED])
  // That the WAL cannot be brought into the database any more is a sync that fails, and told. What is in it stays there.
  expect(await server.end()).toBe(3)
  expect(server.stderr()).toMatch(/^plantstore: The database failed, [^\n]*\n$/)
  expect(server.stderr()).not.toMatch(/backup|remove/i)
  await load.stop()
  disk.mountAgain()
  history.check(scene.database)
}

async function turnAtAnyMoment(random: Random): Promise<void> {
  using disk = mountFragileDisk()
  await using scene = await setScene(disk.path, random)
  const { server, answers, history } = scene
  const load = scene.startLoad()
  await load.acknowledged(1 + random(BEFORE_MAX))

  const turnedAt = history.now()
  disk.turnReadOnly()
  await until('a write is refused', () => answers.refused() > 0)
  // A sync that failed proves nothing of what is on disk, whatever the reason: nobody can say that nothing was stored.
  const hasFailed = answers.refusals().includes(FAILED)
  if (!hasFailed) await untilRefusing(scene)
  expect(await (hasFailed ? untilEnded(server) : server.end())).toBe(3)

  expect(fatalReasons(server)).toHaveLength(hasFailed ? 1 : 0)
  expect(answers.refusals().filter((refusal) => refusal !== REFUSED)).toEqual(hasFailed ? [FAILED] : [])
  await load.stop()
  judgeLeft(scene)
  disk.mountAgain()
  doubtSince(turnedAt, history)
  history.check(scene.database)
}

/**
 * The disk itself may have lied: when its journal is aborted in the middle of a sync, ext4 at times says that the sync was
 * done, and loses what was written (seen with Linux 6.18, of the last group, in one of forty rounds).
 */
function doubtSince(moment: number, history: History): void {
  for (const entry of history.entries()) {
    if (entry.outcome === 'acknowledged' && (entry.answeredAt ?? 0) >= moment) entry.outcome = 'cut off'
  }
}

describe.concurrent('at the start, in one line and with 3, a database is refused', () => {
  test.each([
    ['is missing', 'missing', /does not exist/],
    ['is a file', 'file', /not a directory/],
  ])('whose directory %s', async (_, directory, told) => {
    using folder = makeFolder()
    writeFileSync(join(folder.path, 'file'), '')

    await expectRefusedStart(join(folder.path, directory, 'plantstore.db'), [told])

    expect(readdirSync(folder.path)).toEqual(['file'])
  })

  test.skipIf(lacks(MOUNTS))('whose file system is read-only', async () => {
    using disk = mountDisk(1024 ** 2)
    const database = join(disk.path, 'plantstore.db')
    await createTokenIn(database)
    disk.makeReadOnly()

    await expectRefusedStart(database, [/is not writable/])
    await expectRefusedStart(join(disk.path, 'absent.db'), [/is not writable/])

    expect(readdirSync(disk.path)).toEqual(['plantstore.db'])
  })

  test.skipIf(lacks(SETPRIV))('whose directory may not be written to', async () => {
    using folder = makeFolder()
    const directory = join(folder.path, 'closed')
    mkdirSync(directory, 0o500)

    await expectRefusedStart(join(directory, 'plantstore.db'), [/is not writable/], RESTRICTED)

    expect(readdirSync(directory)).toEqual([])
  })

  test.skipIf(lacks(SETPRIV)).each([
    ['only be read', 0o400],
    ['only be written', 0o200],
    ['be neither', 0o000],
  ])('whose file may %s', async (_, mode) => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database)
    chmodSync(database, mode)

    await expectRefusedStart(database, [/cannot be read and written/], RESTRICTED)
  })
})
