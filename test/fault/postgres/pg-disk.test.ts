import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MOUNTS, mountDisk } from '../../support/disk.ts'
import { makeFolder } from '../../support/folder.ts'
import { OWN_POSTGRES, startCluster } from '../../support/postgres.ts'
import type { Random } from '../../support/random.ts'
import { lacks } from '../../support/requirement.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, runRounds, testLong } from '../rounds.ts'
import { until } from '../watch.ts'
import { BUSY, FULL, setScene, UNREACHABLE } from './scene.ts'

const DISK_BYTES = 96 * 1024 ** 2
const ROOM_MAX_BYTES = 256 * 1024
/** Small files of the log, so that there is room for some, and a new one is needed soon. */
const LOG_FILES = ['--wal-segsize=1']
/** The user as whom the server runs where the tests are root. */
const NOBODY = 65534

const tookMs: number[] = []

describe.skipIf(!IS_LONG || lacks(OWN_POSTGRES, MOUNTS))('a database server whose disk is full', () => {
  afterAll(() => {
    console.log(`longest time to the first write: ${Math.round(Math.max(...tookMs))} ms of ${tookMs.length}`)
  })

  test(
    'that of its tables: has 503 answered until there is room, and nothing acknowledged is missing',
    () => runRounds(rounds(1, 20), (random) => fillTables(random)),
    ROUNDS_TIMEOUT_MS,
  )

  testLong(
    'that of its log, too: it ends; started with room, nothing acknowledged is missing',
    () => runRounds(20, (random) => fillAll(random)),
    ROUNDS_TIMEOUT_MS,
  )
})

/** A statement that needs a new page of a table fails, and the server goes on. */
async function fillTables(random: Random): Promise<void> {
  using disk = mountDisk(DISK_BYTES)
  chmodSync(disk.path, 0o755)
  using elsewhere = makeFolder(existsSync('/dev/shm') ? '/dev/shm' : undefined)
  using cluster = await startCluster(
    {},
    { parent: disk.path, initFlags: [`--waldir=${folderOfServer(elsewhere.path)}`] },
  )
  await using scene = await setScene(cluster.url, random)
  disk.fillUp(random(ROOM_MAX_BYTES))
  await scene.untilRefusing()
  expect(scene.answers.refusals()).toContain(FULL)
  disk.makeRoom()
  tookMs.push(await scene.untilStoring())
  await scene.check([FULL, UNREACHABLE, BUSY])
}

/** A server that cannot go on with its log ends with all its processes, and cannot start again by itself. */
async function fillAll(random: Random): Promise<void> {
  using disk = mountDisk(DISK_BYTES)
  chmodSync(disk.path, 0o755)
  using cluster = await startCluster({ wal_recycle: 'off' }, { parent: disk.path, initFlags: LOG_FILES })
  await using scene = await setScene(cluster.url, random)
  disk.fillUp(random(ROOM_MAX_BYTES))
  await scene.untilRefusing()
  disk.makeRoom()
  await until('the server answers', () => {
    // It may still be ending for want of room.
    if (!cluster.isRunning()) cluster.start()
    return cluster.answers()
  })
  tookMs.push(await scene.untilStoring())
  await scene.check([FULL, UNREACHABLE, BUSY])
}

function folderOfServer(parent: string): string {
  const path = join(parent, 'log')
  chmodSync(parent, 0o755)
  mkdirSync(path, { mode: 0o700 })
  if (process.getuid?.() === 0) chownSync(path, NOBODY, NOBODY)
  return path
}
