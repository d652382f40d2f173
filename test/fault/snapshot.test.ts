import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { KEPT_WAL_BYTES, LONG_WAL_BYTES } from '../../src/engine/sqlite/checkpoints.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { holdTransaction } from './foreign-transaction.ts'
import { plantOf, startHistory } from './history.ts'
import { sendWrite } from './load.ts'
import { repeatLists } from './repeated-requests.ts'
import { rounds } from './rounds.ts'
import { logLines } from './server-log.ts'
import { makeTestDatabase, type Server } from './test-database.ts'

/** How long the snapshot is held after the second warning, and the time between creates meanwhile. */
const HOLD_MS = rounds(0, 180_000)
const PAUSE_MS = 20
/** Successes and lists that show that writes and lists go on. */
const ENOUGH = 200

/** A plant with which the WAL soon grows. */
const hugePlantOf = (id: number) => ({ ...plantOf(id), name: `${id} `.padEnd(60_000, 'x') })

/** The level and the size of each log line about the WAL. */
const walLines = (server: Server): [level: string, walBytes: number][] =>
  logLines(server)
    .filter(({ walBytes }) => walBytes !== undefined)
    .map(({ level, walBytes }) => [level, walBytes])

test('the WAL grows while a reader holds a snapshot, with a warning for each doubling, and then shrinks', async () => {
  using db = await makeTestDatabase({ history: startHistory(1, hugePlantOf) })
  const { database, history } = db
  await using server = await db.serve()
  // The lists are of a user without plants, because huge plants cannot be listed all the time.
  const lists = repeatLists(server, await createTokenIn(database, 'you'))
  const walBytes = () => statSync(`${database}-wal`).size

  const load = db.startLoad(server)
  await until('plants are stored', (see) => see(history.counts()).acknowledged > ENOUGH)
  expect(walLines(server)).toEqual([])
  await using reader = await holdTransaction(database, 'begin', 'select count(*) from plants')
  await until('the log warns of the WAL twice', (see) => see(walLines(server)).length > 1)
  await load.stop()
  for (const endMs = performance.now() + HOLD_MS; performance.now() < endMs; await Bun.sleep(PAUSE_MS)) {
    await sendWrite({ ...db, url: server.url }, history.create())
  }
  const longestBytes = walBytes()
  const warnings = walLines(server)
  const listed = lists.count()
  await until('lists go on', (see) => see(lists.count()) > listed + ENOUGH)
  await reader.release()

  const after = db.startLoad(server)
  await until('the file of the WAL is short again', (see) => see(walBytes()) <= KEPT_WAL_BYTES)
  await after.stop()

  const doublings = Math.floor(Math.log2(longestBytes / LONG_WAL_BYTES))
  expect(warnings.length).toBeWithin(doublings, doublings + 2)
  for (const [index, [level, bytes]] of warnings.entries()) {
    expect(level).toBe('warn')
    expect(bytes).toBeWithin(LONG_WAL_BYTES * 2 ** index, LONG_WAL_BYTES * 2 ** index + KEPT_WAL_BYTES)
  }
  expect(walLines(server)).toEqual(warnings)
  expect([await lists.stop(), history.failures()]).toEqual([[200], []])
  expect(await server.end()).toBe(0)
  db.check()
  console.log(`the WAL grew to ${longestBytes} bytes, with ${warnings.length} warnings`)
})
