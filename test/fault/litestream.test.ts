import { expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { queryAll } from '../store/sqlite/files.ts'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { program } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { largePlantOf, startHistory } from './history.ts'
import { testRounds } from './rounds.ts'
import { fatalReasons } from './server-log.ts'
import { makeTestDatabase } from './test-database.ts'

/** Debian has no package: `go install github.com/benbjohnson/litestream/cmd/litestream@v0.3.13`. */
const LITESTREAM = program('litestream')
/** Enough successes for some checkpoints of the server and of Litestream. */
const ENOUGH = 3000
const PLANTS = 'select id, name, tag from plants order by id'

testRounds(
  'Litestream replicates a database while a server writes, and restores it to the last plant',
  { short: 1, long: 10, needs: [LITESTREAM] },
  async (random) => {
    using db = await makeTestDatabase({ random, history: startHistory(1, largePlantOf) })
    using elsewhere = makeFolder()
    const { database, history } = db
    const replica = `file://${join(elsewhere.path, 'replica')}`
    const [restored, backup] = [join(elsewhere.path, 'restored.db'), join(elsewhere.path, 'backup.db')]
    await using server = await db.serve()
    const litestream = Bun.spawn(['litestream', 'replicate', database, replica], {
      stdio: ['ignore', 'ignore', 'ignore'],
    })
    try {
      const load = db.startLoad(server)
      await load.acknowledged(ENOUGH)
      const backedUp = await runPlantstore(['backup', backup, '--database', database])
      await load.stop()
      await until('the replica has all plants', async (see) => {
        // SQLite would take a WAL of the last attempt for the WAL of the next database.
        for (const suffix of ['', '-wal', '-shm']) rmSync(restored + suffix, { force: true })
        const { exitCode, stderr } = Bun.spawnSync(['litestream', 'restore', '-o', restored, replica])
        see(String(stderr))
        if (exitCode !== 0) return false
        // Litestream writes its snapshot before the WAL that belongs to it. Until then a restored database can be damaged.
        const checked = see(await runPlantstore(['check', '--database', restored]))
        return checked.exitCode === 0 && Bun.deepEquals(queryAll(restored, PLANTS), queryAll(database, PLANTS))
      })

      expect(backedUp.exitCode).toBe(0)
      expect(history.failures()).toEqual([])
      expect(fatalReasons(server)).toEqual([])
      expect(await server.end()).toBe(0)
      db.check()
      history.check(restored)
      litestream.kill('SIGTERM')
      await litestream.exited
      expect(await runPlantstore(['restore', restored, '--force', '--database', database])).toMatchObject({
        exitCode: 0,
      })
      history.check(database)
    } finally {
      litestream.kill('SIGTERM')
      await litestream.exited
    }
  },
)
