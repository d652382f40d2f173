import { expect } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { dump } from '../support/dump.ts'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { backUpUnderLoad } from './backup-moment.ts'
import { startHistory } from './history.ts'
import { testRounds } from './rounds.ts'
import { expectRecovery, makeTestDatabase, restart } from './test-database.ts'

/** Successes before the backup and after it. */
const ENOUGH = 500

testRounds(
  'restore brings back what the backup has and nothing else, after load, backup, more load and a kill',
  { short: 2, long: 50 },
  async (random) => {
    using db = await makeTestDatabase({ random })
    using elsewhere = makeFolder()
    const { database, token, history } = db
    const [backup, kept] = [join(elsewhere.path, 'plants.db'), join(elsewhere.path, 'kept.db')]
    const restore = () => runPlantstore(['restore', backup, '--force', '--database', database])
    await using server = await db.serve()
    const load = db.startLoad(server)
    await load.acknowledged(ENOUGH)
    const made = await backUpUnderLoad(database, backup, history)
    await load.acknowledged(history.counts().acknowledged + ENOUGH)
    const whileServing = await restore()
    await server.kill()
    await load.stop()
    db.checkCopy()
    cpSync(backup, kept)

    const restored = await restore()

    expect([whileServing.exitCode, restored.exitCode]).toEqual([3, 0])
    made.requireOneMoment(database)
    expect(dump(database)).toEqual(dump(kept))
    await using again = await restart(database)
    const plants = await (await again.request('GET', '/plants', { token })).json()
    expect(plants).toHaveLength((dump(kept).plants as unknown[]).length)
    expect(await again.end()).toBe(0)
    const later = startHistory(history.writes().length + 1)
    await expectRecovery(await makeTestDatabase({ random, history: later, folder: db.folder }))
  },
)
