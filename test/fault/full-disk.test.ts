import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { serve } from '../support/executable.ts'
import type { Random } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { BTRFS_DISKS, mountQuotaDisk } from './quota-disk.ts'
import { expectRefusedStart } from './refused-start.ts'
import { REFUSED, refuseForAWhile, setScene, untilRefusing, untilStoring } from './refused-writes.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { until } from './watch.ts'

const DISK_BYTES = 24 * 1024 ** 2
/** Successes before the disk is full, and what is left on it then, at most. */
const BEFORE_MAX = 5000
const ROOM_MAX_BYTES = 512 * 1024
/** How a shell says that SIGKILL ended a process. */
const KILLED = 137
/** The same of SIGBUS. */
const BUS_ERROR = 135

describe.skipIf(lacks(MOUNTS))('a disk that is full', () => {
  test(
    'has writes refused while lists go on; with room again all is well, and nothing acknowledged is ever missing',
    () => runRounds(rounds(1, 20), (random) => fillUnderLoad(random)),
    ROUNDS_TIMEOUT_MS,
  )

  test('has a new database refused in one line with 3', async () => {
    using disk = mountDisk(DISK_BYTES)
    disk.fillUp()

    // The one that makes none says that there is none, or that the others have come no further than to an empty file.
    await expectRefusedStart(join(disk.path, 'plantstore.db'), [
      /There is no (?:space for the )?database|has nothing in it yet/,
    ])
  })

  test('has a database that was there refused in one line with 3, and leaves it as it is', async () => {
    using disk = mountDisk(DISK_BYTES)
    const database = join(disk.path, 'plantstore.db')
    await createTokenIn(database)
    const before = readFileSync(database)
    disk.fillUp()

    await expectRefusedStart(database, ['There is no space for the database'])

    expect(readFileSync(database).equals(before)).toBe(true)
  })
})

describe.skipIf(lacks(STRACE))('a quota that is used up', () => {
  test(
    'has writes refused while lists go on; with room again all is well, and nothing acknowledged is missing',
    // A quota of blocks, as most are: there is room for names, and none for what is in files.
    () => runRounds(rounds(1, 20), (random) => refuseForAWhile(['pwrite64'], 'EDQUOT', random)),
    ROUNDS_TIMEOUT_MS,
  )
})

describe.skipIf(!IS_LONG || lacks(BTRFS_DISKS))('a quota of btrfs that is used up', () => {
  test(
    'has writes refused or the server killed, and nothing acknowledged is missing',
    () => runRounds(20, (random) => useUpQuotaOfBtrfs(random)),
    ROUNDS_TIMEOUT_MS,
  )
})

/** Has the disk full at some moment of a load, then not, then full again, and ends the server in one way or another. */
async function fillUnderLoad(random: Random): Promise<void> {
  using disk = mountDisk(DISK_BYTES)
  await using scene = await setScene(disk.path, random)
  const { server, answers, lists, history } = scene
  const load = scene.startLoad()

  await load.acknowledged(1 + random(BEFORE_MAX))
  disk.fillUp(random(ROOM_MAX_BYTES))
  await untilRefusing(scene)
  disk.makeRoom()
  await untilStoring(scene)

  const refused = answers.refused()
  disk.fillUp()
  await until('writes are refused again', () => answers.refused() > refused)
  expect(await lists.stop()).toEqual([200])
  expect(answers.refusals()).toEqual([REFUSED])
  const signal = random(2) === 0 ? 'SIGTERM' : 'SIGKILL'
  server.signal(signal)
  expect(await server.ended()).toBe(signal === 'SIGTERM' ? 0 : KILLED)
  await load.stop()
  disk.makeRoom()

  expect(server.stderr()).toBe('')
  history.check(scene.database)
}

/**
 * A file system that copies on write needs space for what SQLite's shared memory holds, too, and the system kills who
 * writes to it where there is none.
 */
async function useUpQuotaOfBtrfs(random: Random): Promise<void> {
  using disk = mountQuotaDisk()
  await using scene = await setScene(disk.path, random)
  const { server, answers, history } = scene
  const load = scene.startLoad()
  await load.acknowledged(1 + random(BEFORE_MAX))

  disk.fillUp(random(ROOM_MAX_BYTES))
  const ended = server.ended()
  const exitCode = await Promise.race([ended, untilRefusing(scene).catch(() => ended)])
  disk.makeRoom()
  await server.kill()
  await load.stop()

  if (exitCode === undefined) expect(answers.refusals()).toEqual([REFUSED])
  else expect(exitCode).toBe(BUS_ERROR)
  await using again = await serve(scene.database)
  expect((await again.request('GET', '/readyz')).status).toBe(200)
  history.check(scene.database)
}
