/**
 * Compares the service with goals and its peers: see README.md. Usage:
 * `bun run bench [ROW...] [--rounds N] [--seconds N] [--database URL]`. The exit code is 1 if a row failed or is below its floor, and 2
 * if the benchmark cannot run.
 */
import { join, relative } from 'node:path'
import { moveToLoadCore } from '../support/process.ts'
import { type DatabaseServer, openDatabaseServer, PRIVATE } from './database-server.ts'
import { describeMachine, describeVersions, requireMachine } from './machine.ts'
import { buildPeers, PEERS_ON_FILES, PEERS_ON_POSTGRES } from './peers.ts'
import { drawPicture } from './picture.ts'
import { isAcceptable, type Results } from './results.ts'
import { POSTGRES_ROWS, ROWS } from './rows/rows.ts'
import { choose, clearOnSignals, listed, parseOptions, prepare, runRows } from './run.ts'
import { PROJECT, SCRATCH } from './workspace.ts'

const DEFAULTS = { rounds: 5, seconds: 3 }
const EXIT_BELOW_FLOOR = 1
const USAGE = `Usage: bun run bench [ROW...] [--rounds ${DEFAULTS.rounds}] [--seconds ${DEFAULTS.seconds}] [--database URL]

Rows (all of them if none is named):
${listed(ROWS)}

Rows with --database, on the PostgreSQL server of that URL, whose user can make databases; with "${PRIVATE}" one is started:
${listed(POSTGRES_ROWS)}`

const say = (text: string) => console.error(text)
const { options, peers } = prepare(USAGE, () => {
  const options = readOptions()
  const isOnPostgres = options.database !== undefined
  requireMachine(isOnPostgres ? ['taskset', 'wrk', 'node'] : ['taskset', 'wrk'])
  const peers = buildPeers(isOnPostgres ? PEERS_ON_POSTGRES : PEERS_ON_FILES, say)
  moveToLoadCore()
  return { options, peers }
})

let databaseServer: DatabaseServer | undefined
clearOnSignals(() => databaseServer?.[Symbol.dispose]())
const startMs = performance.now()
const { rounds, seconds, database } = options
if (database !== undefined) databaseServer = await openDatabaseServer(database)
const rows = await runRows(options.rows, { rounds, seconds, peers, databaseServer })
databaseServer?.[Symbol.dispose]()
await writeResults({
  date: new Date().toISOString(),
  machine: describeMachine(),
  versions: describeVersions(),
  rounds,
  seconds,
  rows,
})
peers.missing.forEach(say)
say(`It took ${Math.round((performance.now() - startMs) / 1000)} s.`)
process.exit(rows.every(isAcceptable) ? 0 : EXIT_BELOW_FLOOR)

/** Reads the command line. Throws if an option or a row is unknown. */
function readOptions() {
  const { positionals, ...options } = parseOptions(DEFAULTS)
  const all = options.database === undefined ? ROWS : POSTGRES_ROWS
  const rows = choose(all, positionals)
  const isLong = options.rounds >= DEFAULTS.rounds && options.seconds >= DEFAULTS.seconds
  return { ...options, rows, isWhole: rows.length === all.length && isLong }
}

/** Writes the results and the picture. Only the whole benchmark writes them to this folder; all other runs write to `SCRATCH`. */
async function writeResults(results: Results): Promise<void> {
  const isComplete = peers.missing.length === 0 && results.rows.every(({ failure }) => failure === undefined)
  const folder = options.isWhole && isComplete ? import.meta.dir : SCRATCH
  const name = database === undefined ? 'results' : 'results-postgres'
  const files = new Map([[`${name}.json`, toJson(results)]])
  const picture = drawPicture(results)
  if (picture !== undefined) files.set(`${name}.svg`, picture)
  for (const [name, text] of files) {
    await Bun.write(join(folder, name), text)
    say(`wrote ${relative(PROJECT, join(folder, name))}`)
  }
}

/** JSON with the values of all rounds on one line. */
function toJson(results: Results): string {
  return `${JSON.stringify(results, undefined, 2).replace(/\[[^[\]{}"]+\]/g, (numbers) => numbers.replace(/\s+/g, ' '))}\n`
}
