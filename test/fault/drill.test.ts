import { expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { dump } from '../support/dump.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { requireOneMoment } from './backup-moment.ts'
import { startHistory } from './history.ts'
import { beginLife, endInGoodOrder, judgeLeft } from './life.ts'
import { startLoad } from './load.ts'
import { QUIET, restart } from './restart.ts'
import { ROUNDS_TIMEOUT_MS, rounds, runRounds } from './rounds.ts'

/** Answers before the backup, and after it. */
const ANSWERS = 500

test(
  'load, backup, more load, kill, restore: what the backup had is there, and nothing else, and the service goes on',
  () =>
    runRounds(rounds(2, 50), async (random) => {
      using life = await beginLife(random)
      using elsewhere = makeFolder()
      const { database, token, history } = life
      const [backup, kept] = [join(elsewhere.path, 'plants.db'), join(elsewhere.path, 'kept.db')]
      await using server = await serve(database, QUIET)
      const load = startLoad({ ...life, url: server.url })
      await load.acknowledged(ANSWERS)
      const begunAt = history.now()
      expect(await runPlantstore(['backup', backup, '--database', database])).toMatchObject({ exitCode: 0 })
      const endedAt = history.now()
      await load.acknowledged(history.counts().acknowledged + ANSWERS)
      const refused = await runPlantstore(['restore', backup, '--force', '--database', database])
      await server.kill()
      await load.stop()
      judgeLeft(life)
      cpSync(backup, kept)

      const restored = await runPlantstore(['restore', backup, '--force', '--database', database])

      // Not while the server ran.
      expect([refused.exitCode, restored.exitCode]).toEqual([3, 0])
      requireOneMoment(database, history, begunAt, endedAt)
      expect(dump(database)).toEqual(dump(kept))
      await using again = await restart(database)
      const plants = await (await again.request('GET', '/plants', { token })).json()
      expect(plants).toHaveLength((dump(kept).plants as unknown[]).length)
      expect(await again.end()).toBe(0)
      const other = startHistory(history.entries().length + 1)
      await endInGoodOrder({ ...life, history: other })
    }),
  ROUNDS_TIMEOUT_MS,
)
