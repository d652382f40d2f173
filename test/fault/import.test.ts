import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { percentile } from '../bench/statistics.ts'
import { queryAll } from '../store/sqlite/files.ts'
import { inBackground } from '../support/background.ts'
import { COMMAND } from '../support/executable.ts'
import { IS_LONG } from '../support/long.ts'
import { startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'
import { rounds } from './rounds.ts'
import { makeTestDatabase, type Server } from './test-database.ts'

/** Enough that an import takes many batches. */
const LINES = rounds(60_000, 1_000_000)
/** The promise for a create beside an import. */
const CREATE_WAIT_MAX_MS = 100
const CONNECTIONS = 4
/** Creates come in the pauses of an import. Without pauses a server answers about ten meanwhile, and with them more than a hundred. */
const CREATES_MIN = 40

test('an import beside a server lets no create wait for long, and refuses none', async () => {
  using db = await makeTestDatabase()
  const file = join(db.folder, 'plants.jsonl')
  const ids = Array.from({ length: LINES }, (_, index) => (index * 7919) % 1_000_003)
  writeFileSync(file, ids.map((id) => `{"user":"them","id":${id},"name":"Monstera","tag":"evergreen"}\n`).join(''))
  await using server = await db.serve()
  // The first write starts the writing thread.
  await create(server, db.token, 0)
  const { ended } = startProgram([...COMMAND, 'import', file, '--database', db.database])
  await until(
    'some lines are in',
    (see) => see(Number(queryAll(db.database, 'select count(*) from plants')[0]?.[0])) > 1,
  )
  const { waitsMs, statuses } = await timeCreates(server, db.token, ended)
  const { stderr, exitCode } = await ended

  const at = (share: number) => Math.round(percentile(waitsMs, share))
  console.log(
    `${waitsMs.length} creates while ${LINES} lines came in: p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)} ms`,
  )
  expect(stderr).toContain(`Imported ${LINES} lines into ${db.database}: created ${LINES} plants,`)
  expect([exitCode, statuses]).toEqual([0, [200]])
  expect(waitsMs.length).toBeGreaterThan(CREATES_MIN)
  // The short form runs beside other tests, so its times say nothing.
  if (IS_LONG) expect(at(0.99)).toBeLessThan(CREATE_WAIT_MAX_MS)
  expect(await server.end()).toBe(0)
})

/** Creates a plant. Resolves to the status when the answer is whole. */
async function create(server: Server, token: string, id: number): Promise<number> {
  const response = await server.request('POST', '/plants', { token, body: { id, name: 'Fern' } })
  await response.text()
  return response.status
}

/** Creates plants over some connections until something has ended. Resolves to their waits and statuses. */
async function timeCreates(server: Server, token: string, end: Promise<unknown>) {
  const statuses = new Set<number>()
  const waitsMs: number[] = []
  let isOver = false
  let nextId = 1
  const work = async () => {
    while (!isOver) {
      const beginMs = performance.now()
      statuses.add(await create(server, token, nextId++))
      if (!isOver) waitsMs.push(performance.now() - beginMs)
      await Bun.sleep(1)
    }
  }
  const workers = inBackground(Array.from({ length: CONNECTIONS }, work))
  await end
  isOver = true
  await workers
  return { waitsMs, statuses: [...statuses] }
}
