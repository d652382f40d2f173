/**
 * Compares the service with goals, a bare server and its peers: see README.md. Usage:
 * `bun run bench [ROW...] [--rounds N] [--seconds N] [--database URL]`. The exit code is 1 if a row failed or is below its floor, and 2
 * if the benchmark cannot run.
 */
import { join, relative } from 'node:path'
import { type DatabaseServer, openDatabaseServer } from './database-server.ts'
import { describeMachine, describeVersions } from './machine.ts'
import { type Options, parseOptions, USAGE } from './options.ts'
import { drawPicture } from './picture.ts'
import { reportRow } from './report.ts'
import { requireExecutable, requireMachine, requirePeers } from './requirements.ts'
import { failedRow, isAcceptable, measuredRow, type ResultRow, type Results } from './results.ts'
import type { Row } from './rows/row.ts'
import { makeWorkspace, PROJECT, pinToLoadCore, SCRATCH, type Workspace } from './workspace.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const EXIT_BELOW_FLOOR = 1
const EXIT_CANNOT_RUN = 2
const EXIT_SIGNAL = 130

const say = (text: string) => console.error(text)
const options = prepare()
let current: Workspace | undefined
let databaseServer: DatabaseServer | undefined
for (const signal of SIGNALS) {
  process.once(signal, () => {
    current?.clear()
    databaseServer?.[Symbol.dispose]()
    process.exit(EXIT_SIGNAL)
  })
}

const startMs = performance.now()
const machine = await inWorkspace(describeMachine)
const rows: ResultRow[] = []
if (options.database !== undefined) databaseServer = await openDatabaseServer(options.database)
for (const row of options.rows) {
  rows.push(await measureRow(row, options))
  console.log(reportRow(rows.at(-1) ?? failedRow(row, 'nothing came of it')))
}
databaseServer?.[Symbol.dispose]()
const { rounds, seconds } = options
await writeResults({ date: new Date().toISOString(), machine, versions: describeVersions(), rounds, seconds, rows })
say(`It took ${Math.round((performance.now() - startMs) / 1000)} s.`)
process.exit(isAcceptable({ rows }) ? 0 : EXIT_BELOW_FLOOR)

/** Reads the command line and prepares the contestants. Ends the process if that is not possible. */
function prepare(): Options {
  try {
    const parsed = parseOptions(process.argv.slice(2))
    requireMachine()
    requireExecutable(say)
    requirePeers(say, { needsSqlite: parsed.database === undefined })
    pinToLoadCore()
    return parsed
  } catch (error) {
    say(`${error instanceof Error ? error.message : error}\n\n${USAGE}`)
    process.exit(EXIT_CANNOT_RUN)
  }
}

async function measureRow(row: Row, { rounds, seconds }: Options): Promise<ResultRow> {
  say(`${row.name}: ${row.title}`)
  try {
    const result = await inWorkspace((workspace) =>
      row.run({ workspace, rounds, seconds, databaseServer, say: (text) => say(`  ${text}`) }),
    )
    return measuredRow(row, result)
  } catch (error) {
    return failedRow(row, error instanceof Error ? error.message : String(error))
  }
}

async function inWorkspace<T>(work: (workspace: Workspace) => Promise<T>): Promise<T> {
  const workspace = makeWorkspace()
  current = workspace
  try {
    return await work(workspace)
  } finally {
    workspace.clear()
  }
}

/** Writes the results and the picture. Only the whole benchmark writes them to this folder; all other runs write to `SCRATCH`. */
async function writeResults(results: Results): Promise<void> {
  const isPublished = options.isWhole && results.rows.every(({ failure }) => failure === undefined)
  const folder = isPublished ? import.meta.dir : SCRATCH
  const name = options.database === undefined ? 'results' : 'results-postgres'
  const files = new Map([[`${name}.json`, `${JSON.stringify(results, undefined, 2)}\n`]])
  const picture = drawPicture(results)
  if (picture !== undefined) files.set(`${name}.svg`, picture)
  for (const [name, text] of files) {
    await Bun.write(join(folder, name), text)
    say(`wrote ${relative(PROJECT, join(folder, name))}`)
  }
}
