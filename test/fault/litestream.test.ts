import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { queryAll } from '../store/sqlite/files.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks, program } from '../support/requirement.ts'
import { largePlantOf, startHistory } from './history.ts'
import { beginLife } from './life.ts'
import { startLoad } from './load.ts'
import { QUIET } from './restart.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'
import { fatalReasons, until } from './watch.ts'

/** No package of Debian's: `go install github.com/benbjohnson/litestream/cmd/litestream@v0.3.13`. */
const LITESTREAM = program('litestream')
/** Enough for some checkpoints, of either. */
const ANSWERS = 3000
const PLANTS = 'select id, name, tag from plants order by id'

test.skipIf(lacks(LITESTREAM))(
  'Litestream replicates a database while a server writes, and restores it to the last plant',
  () =>
    runRounds(rounds(1, 10), async (random) => {
      using life = await beginLife(random, startHistory(1, largePlantOf))
      using elsewhere = makeFolder()
      const replica = `file://${join(elsewhere.path, 'replica')}`
      const [restored, backup] = ['restored.db', 'backup.db'].map((name) => join(elsewhere.path, name))
      await using server = await serve(life.database, QUIET)
      const litestream = Bun.spawn(['litestream', 'replicate', life.database, replica], {
        stdio: ['ignore', 'ignore', 'ignore'],
      })
      try {
        const load = startLoad({ ...life, url: server.url })
        await load.acknowledged(ANSWERS)
        const backedUp = await runPlantstore(['backup', backup ?? '', '--database', life.database])
        await load.stop()
        await until('the replica has all', async () => {
          // The last look has left a WAL and its index, which SQLite would take for those of the next database.
          for (const suffix of ['', '-wal', '-shm']) rmSync(restored + suffix, { force: true })
          const { exitCode } = Bun.spawnSync(['litestream', 'restore', '-o', restored ?? '', replica])
          if (exitCode !== 0) return false
          // Litestream has its snapshot first and then the WAL that belongs to it. Until then a restore can be damaged.
          const { exitCode: checked } = await runPlantstore(['check', '--database', restored ?? ''])
          return checked === 0 && Bun.deepEquals(queryAll(restored ?? '', PLANTS), queryAll(life.database, PLANTS))
        })

        expect(backedUp.exitCode).toBe(0)
        expect(load.statuses().keys().toArray().sort()).toEqual([200, 204])
        expect(fatalReasons(server)).toEqual([])
        expect(await server.end()).toBe(0)
        life.history.check(life.database)
        life.history.check(restored ?? '')
      } finally {
        litestream.kill('SIGTERM')
        await litestream.exited
      }
    }),
  ROUNDS_TIMEOUT_MS,
)
