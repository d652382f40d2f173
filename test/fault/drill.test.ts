import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { BACKUP_OF } from '../../src/engine/sqlite/files/schema.ts'
import { queryAll } from '../store/sqlite/files.ts'
import { dumpFile } from '../support/empty-databases.ts'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { until } from '../support/until.ts'
import { faultsIn, type History, largePlantOf, readPlants, startHistory } from './history.ts'
import { gapsBetween } from './power-loss/compare.ts'
import { testRounds } from './rounds.ts'
import { expectRecovery, makeTestDatabase, restart } from './test-database.ts'

/** The schema with the numbers in the header of the file, without the table that is only in a backup. */
const SCHEMA = `select type, name, sql, user_version, application_id
  from sqlite_schema, pragma_user_version, pragma_application_id where name <> '${BACKUP_OF}' order by name`

/** Successes before the backup and after it. */
const ENOUGH = 500

testRounds(
  'a backup under load is the database at one moment, and restore brings back that and nothing else, after more load and a kill',
  { short: 2, long: 100 },
  async (random) => {
    using db = await makeTestDatabase({ random, history: startHistory(1, largePlantOf) })
    using elsewhere = makeFolder()
    const { database, token, history } = db
    const [backup, kept] = [join(elsewhere.path, 'plants.db'), join(elsewhere.path, 'kept.db')]
    const restore = () => runPlantstore(['restore', backup, '--force', '--database', database])
    await using server = await db.serve()
    const load = db.startLoad(server)
    await load.acknowledged(ENOUGH)
    let begunAt = 0
    await until('something is sent or answered during a backup', async () => {
      begunAt = history.now()
      expect(await runPlantstore(['backup', backup, '--force', '--database', database])).toMatchObject({ exitCode: 0 })
      return history.now() !== begunAt
    })
    const endedAt = history.now()
    await load.acknowledged(history.counts().acknowledged + ENOUGH)
    const whileServing = await restore()
    const refusals = history.failures()
    await server.kill()
    await load.stop()
    db.checkCopy()
    cpSync(backup, kept)

    const restored = await restore()

    expect([whileServing.exitCode, restored.exitCode, refusals]).toEqual([3, 0, []])
    requireOneMoment(database, history, begunAt, endedAt)
    const contents = dumpFile(kept)
    expect([dumpFile(database), queryAll(database, SCHEMA)]).toEqual([contents, queryAll(kept, SCHEMA)])
    await using again = await restart(database)
    const plants = await (await again.request('GET', '/plants', { token })).json()
    expect(plants).toHaveLength(contents.plants.length)
    expect(await again.end()).toBe(0)
    const later = startHistory(history.writes().length + 1)
    await expectRecovery(await makeTestDatabase({ random, history: later, folder: db.folder }))
  },
)

/**
 * Throws unless a database is what it was at one moment between these two. It has all that was answered before, nothing that
 * was sent after, and no write without the writes that were answered before it was sent.
 */
function requireOneMoment(database: string, history: History, begunAt: number, endedAt: number): void {
  using db = new Database(database, { readonly: true })
  const rows = readPlants(db, 1)
  const sent = history.writes().filter(({ sentAt }) => sentAt < endedAt)
  const isEarly = ({ answeredAt = Number.POSITIVE_INFINITY }) => answeredAt < begunAt
  expect(sent.some(isEarly)).toBe(true)
  const known = sent.map((write) => (isEarly(write) ? write : { ...write, outcome: 'unknown' as const }))
  expect([...faultsIn(rows, known, history.plantOf), ...gapsBetween(rows, sent, history)]).toEqual([])
}
