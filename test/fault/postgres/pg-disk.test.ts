import { expect } from 'bun:test'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MOUNTS, mountDisk } from '../../support/disk.ts'
import { MEMORY, makeFolder } from '../../support/folder.ts'
import { startCluster } from '../../support/postgres-cluster.ts'
import { OWN_POSTGRES, ownedByServer } from '../../support/postgres-system.ts'
import { until } from '../../support/until.ts'
import { BUSY_REFUSAL, FAILED_REFUSAL, FULL_REFUSAL } from '../history.ts'
import { testRounds } from '../rounds.ts'
import { startRound } from './round.ts'

const DISK_BYTES = 96 * 1024 ** 2
const ROOM_MAX_BYTES = 256 * 1024

for (const what of ['tables', 'WAL'] as const) {
  testRounds(
    `a service whose database server has no room for its ${what} answers writes by 503 and loses no acknowledged one`,
    { short: 0, long: 20, needs: [OWN_POSTGRES, MOUNTS] },
    async (random) => {
      using disk = mountDisk(DISK_BYTES)
      chmodSync(disk.path, 0o755)
      using elsewhere = makeFolder(MEMORY)
      const initFlags =
        what === 'tables'
          ? // A statement that needs a new page fails. The server goes on, because its WAL is on another disk.
            [`--waldir=${folderOfServer(elsewhere.path)}`]
          : // Small files of the WAL: there is room for some, and a new one is needed soon.
            ['--wal-segsize=1']
      using cluster = await startCluster({ wal_recycle: 'off' }, { parent: disk.path, initFlags })
      await using round = await startRound(cluster.url, random)
      disk.fillUp(random(ROOM_MAX_BYTES))
      await round.untilRefusing()
      disk.makeRoom()
      await until('the server answers', () => {
        // A server that could not write its WAL ends with all its processes. It may still be ending.
        if (!cluster.isRunning()) cluster.start()
        return cluster.answers()
      })
      await round.untilStoring()
      await round.check([FULL_REFUSAL, FAILED_REFUSAL, BUSY_REFUSAL])
      if (what === 'tables') expect(round.history.refusals()).toContain(FULL_REFUSAL)
    },
  )
}

function folderOfServer(parent: string): string {
  const path = join(parent, 'log')
  chmodSync(parent, 0o755)
  mkdirSync(path, { mode: 0o700 })
  ownedByServer(path)
  return path
}
