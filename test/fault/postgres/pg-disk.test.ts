import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MOUNTS, mountDisk } from '../../support/disk.ts'
import { makeFolder } from '../../support/folder.ts'
import { type Cluster, startCluster } from '../../support/postgres-cluster.ts'
import { OWN_POSTGRES, ownedByServer } from '../../support/postgres-system.ts'
import type { Random } from '../../support/random.ts'
import { lacks } from '../../support/requirement.ts'
import { BUSY_REFUSAL, FAILED_REFUSAL, FULL_REFUSAL } from '../history.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, runRounds } from '../rounds.ts'
import { until } from '../until.ts'
import { printLongestRecovery, startRound } from './round.ts'

const ROUNDS = 20
const DISK_BYTES = 96 * 1024 ** 2
const ROOM_MAX_BYTES = 256 * 1024

describe.skipIf(!IS_LONG || lacks(OWN_POSTGRES, MOUNTS))('a service whose database server has a full disk', () => {
  const recoveries = printLongestRecovery()

  test(
    'answers writes by 503 50301 until the tables have room, and loses no acknowledged one',
    () =>
      runRounds(ROUNDS, async (random) => {
        using disk = mountDisk(DISK_BYTES)
        chmodSync(disk.path, 0o755)
        using elsewhere = makeFolder(existsSync('/dev/shm') ? '/dev/shm' : undefined)
        // A statement that needs a new page fails. The server goes on, because its WAL is on another disk.
        const initFlags = [`--waldir=${folderOfServer(elsewhere.path)}`]
        using cluster = await startCluster({}, { parent: disk.path, initFlags })
        const refusals = await fill(disk, cluster, random)
        expect(refusals).toContain(FULL_REFUSAL)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  test(
    'goes on after the server had no room for its WAL, ended and was started again, and loses no acknowledged write',
    () =>
      runRounds(ROUNDS, async (random) => {
        using disk = mountDisk(DISK_BYTES)
        chmodSync(disk.path, 0o755)
        // Small files of the WAL: there is room for some, and a new one is needed soon.
        const initFlags = ['--wal-segsize=1']
        using cluster = await startCluster({ wal_recycle: 'off' }, { parent: disk.path, initFlags })
        await fill(disk, cluster, random)
      }),
    ROUNDS_TIMEOUT_MS,
  )

  /** Fills the disk, makes room again and checks the plants. Resolves to the refusals. */
  const fill = async (disk: ReturnType<typeof mountDisk>, cluster: Cluster, random: Random) => {
    await using round = await startRound(cluster.url, random)
    disk.fillUp(random(ROOM_MAX_BYTES))
    await round.untilRefusing()
    disk.makeRoom()
    await until('the server answers', () => {
      // A server that could not write its WAL ends with all its processes. It may still be ending.
      if (!cluster.isRunning()) cluster.start()
      return cluster.answers()
    })
    recoveries.record(await round.untilStoring())
    await round.check([FULL_REFUSAL, FAILED_REFUSAL, BUSY_REFUSAL])
    return round.history.refusals()
  }
})

function folderOfServer(parent: string): string {
  const path = join(parent, 'log')
  chmodSync(parent, 0o755)
  mkdirSync(path, { mode: 0o700 })
  ownedByServer(path)
  return path
}
