import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { serve } from '../support/executable.ts'
import type { Random } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { FULL_REFUSAL } from './history.ts'
import { BTRFS_DISKS, mountQuotaDisk } from './quota-disk.ts'
import { expectRefusedStart } from './refused-start.ts'
import { refuseForAWhile, startDiskRound, untilRefusing, untilStoring } from './refused-writes.ts'
import { IS_LONG, testRounds } from './rounds.ts'
import { until } from './until.ts'

const DISK_BYTES = 24 * 1024 ** 2
/** The most successes before the disk is full, and the most space that is left on it then. */
const BEFORE_MAX = 5000
const ROOM_MAX_BYTES = 512 * 1024
/** The exit codes of a process that SIGKILL or SIGBUS ended. */
const KILLED = 137
const BUS_ERROR = 135

describe.skipIf(lacks(MOUNTS))('a full disk', () => {
  testRounds(
    'refuses writes while lists go on; with room again writes go on, and nothing acknowledged is ever missing',
    { short: 1, long: 20 },
    fillUnderLoad,
  )

  test('refuses a new database with one line and exit code 3', async () => {
    using disk = mountDisk(DISK_BYTES)
    disk.fillUp()

    // `check`, which makes no database, finds none, or the empty file that the other commands have left.
    await expectRefusedStart(join(disk.path, 'plantstore.db'), [
      /There is no (?:space for the )?database|has nothing in it yet/,
    ])
  })

  test('refuses an existing database with one line and exit code 3, and does not change the database', async () => {
    using disk = mountDisk(DISK_BYTES)
    const database = join(disk.path, 'plantstore.db')
    await createTokenIn(database)
    const before = readFileSync(database)
    disk.fillUp()

    await expectRefusedStart(database, ['There is no space for the database'])

    expect(readFileSync(database).equals(before)).toBe(true)
  })
})

describe('a quota that is used up', () => {
  testRounds(
    'refuses writes while lists go on; with room again writes go on, and nothing acknowledged is missing',
    { short: 1, long: 20, needs: [STRACE] },
    // Most quotas count blocks: there is room for names of files and none for their content.
    (random) => refuseForAWhile(['pwrite64'], 'EDQUOT', random),
  )
})

describe.skipIf(!IS_LONG || lacks(BTRFS_DISKS))('a quota of btrfs that is used up', () => {
  testRounds(
    'refuses writes or kills the server, and nothing acknowledged is missing',
    { short: 0, long: 20 },
    useUpQuotaOfBtrfs,
  )
})

/** Fills the disk under load, makes room, fills the disk again, and ends the server by a random signal. */
async function fillUnderLoad(random: Random): Promise<void> {
  using disk = mountDisk(DISK_BYTES)
  await using round = await startDiskRound(random, disk.path)
  const { server, lists, history } = round
  const load = round.startLoad()

  await load.acknowledged(1 + random(BEFORE_MAX))
  disk.fillUp(random(ROOM_MAX_BYTES))
  await untilRefusing(round)
  disk.makeRoom()
  await untilStoring(round)

  const { refused } = history.counts()
  disk.fillUp()
  await until('writes are refused again', () => history.counts().refused > refused)
  expect(await lists.stop()).toEqual([200])
  expect(history.refusals()).toEqual([FULL_REFUSAL])
  const signal = random(2) === 0 ? 'SIGTERM' : 'SIGKILL'
  server.signal(signal)
  expect(await server.ended()).toBe(signal === 'SIGTERM' ? 0 : KILLED)
  await load.stop()
  disk.makeRoom()

  expect(server.stderr()).toBe('')
  round.check()
}

/** A copy-on-write file system needs space for SQLite's shared memory, too. Without space the kernel kills the writer. */
async function useUpQuotaOfBtrfs(random: Random): Promise<void> {
  using disk = mountQuotaDisk()
  await using round = await startDiskRound(random, disk.path)
  const { server, history } = round
  const load = round.startLoad()
  await load.acknowledged(1 + random(BEFORE_MAX))

  disk.fillUp(random(ROOM_MAX_BYTES))
  const ended = server.ended()
  const exitCode = await Promise.race([ended, untilRefusing(round).catch(() => ended)])
  disk.makeRoom()
  await server.kill()
  await load.stop()

  if (exitCode === undefined) expect(history.refusals()).toEqual([FULL_REFUSAL])
  else expect(exitCode).toBe(BUS_ERROR)
  await using again = await serve(round.database)
  expect((await again.request('GET', '/readyz')).status).toBe(200)
  round.check()
}
