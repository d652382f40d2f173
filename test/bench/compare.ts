/**
 * Compares the throughput and the CPU time per request of two executables: see README.md. Usage:
 * `bun run bench:compare OLD NEW [WORKLOAD...] [--rounds N] [--seconds N]`. The exit code is 1 if a workload failed, and 2 if the
 * comparison cannot run. A goal that is missed is printed, and does not change the exit code.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { runPlantstore } from '../support/executable.ts'
import { moveToLoadCore } from '../support/process.ts'
import { type Content, makeDatabase } from './databases.ts'
import { createLoad, type Load, listLoad, mixLoad, pagesLoad, type Rate } from './load/wrk.ts'
import { requireMachine } from './machine.ts'
import type { Goal } from './results.ts'
import { type Measured, ratesRow } from './rounds.ts'
import type { Bench, Row } from './rows/row.ts'
import { amount, choose, clearOnSignals, listed, parseOptions, prepare, runRows } from './run.ts'
import { startPlantstore } from './servers.ts'
import { median, ratios, spreadOf } from './statistics.ts'

const DEFAULTS = { rounds: 10, seconds: 2 }
const EXIT_FAILED = 1
const ONE_USER: Content = { users: 1, plantsPerUser: 1000 }
const MANY_USERS: Content = { users: 10_000, plantsPerUser: 100 }
const SOME_USERS: Content = { users: 1000, plantsPerUser: 100 }
/** The goal of reads, which shall not become slower. */
const SAME: Goal = { goal: 1.05, floor: 0.95 }
const FASTER: Goal = { goal: 1.3, floor: 1.1 }

/** A load whose throughput and CPU time for a request are compared. */
const throughput = (name: string, title: string, content: Content, load: (tokensFile: string) => Load, goal = SAME) =>
  ratesRow({
    name,
    title,
    async contestants(bench) {
      const { servers, tokensFile } = await startBoth(bench, content)
      return servers.map((each) => ({ ...each, load: load(tokensFile) }))
    },
    claims: [['NEW', 'OLD', goal]],
    notes: (measured) => [describeCpu(measured)],
  })

const WORKLOADS: readonly Row[] = [
  ...([1, 4, 64] as const).map((count) =>
    throughput(
      `create-${count}`,
      `create, one user, ${count} ${count === 1 ? 'connection' : 'connections'}, durable`,
      ONE_USER,
      (tokensFile) => createLoad(tokensFile, count),
      count === 1 ? { goal: 1.2, floor: 1 } : FASTER,
    ),
  ),
  throughput('list', 'list of 20, one user, 64 connections', ONE_USER, listLoad),
  throughput('list-users', 'list of 20, 10 000 users in random order, 64 connections', MANY_USERS, listLoad),
  throughput('list-new', 'list of 20 that no cache has, one user, 64 connections', ONE_USER, (tokensFile) =>
    pagesLoad(tokensFile, 0, 980),
  ),
  throughput('mix', '90 % list of 20, 10 % create, 1 000 users in random order, 64 connections', SOME_USERS, mixLoad),
]

const USAGE = `Usage: bun run bench:compare OLD NEW [WORKLOAD...] [--rounds ${DEFAULTS.rounds}] [--seconds ${DEFAULTS.seconds}]

OLD and NEW are executables of the service. Workloads (all of them if none is named):
${listed(WORKLOADS)}`

const { executables, rows, rounds, seconds } = prepare(USAGE, () => {
  const { rounds, seconds, positionals } = parseOptions(DEFAULTS)
  const [oldPath = '', newPath = '', ...names] = positionals
  if (!existsSync(oldPath) || !existsSync(newPath)) throw new Error('Name two executables, the old one first.')
  requireMachine(['taskset', 'wrk'])
  moveToLoadCore()
  const executables = { OLD: resolve(oldPath), NEW: resolve(newPath) }
  return { executables, rows: choose(WORKLOADS, names), rounds, seconds }
})
clearOnSignals()
const peers = { present: [], missing: [] }
const results = await runRows(rows, { rounds, seconds, peers, databaseServer: undefined })
if (results.some(({ failure }) => failure !== undefined)) process.exitCode = EXIT_FAILED

/** Starts both executables, each on its own copy of one database. */
async function startBoth({ workspace }: Bench, content: Content) {
  // The old executable makes the database, because it would refuse a newer schema. The new one migrates its copy.
  const seed = await makeDatabase(workspace.file('seed.db'), content, async (path, user) => {
    const command = [executables.OLD]
    const { stdout } = await runPlantstore(['token', 'create', '--user', user, '--database', path], { command })
    return stdout.trim()
  })
  const started = Object.entries(executables).map(async ([name, executable]) => {
    const database = seed.copy(workspace.file(`${name}.db`))
    return { name, server: await startPlantstore(workspace, database, { executable }) }
  })
  return { servers: await Promise.all(started), tokensFile: seed.tokensFile }
}

function describeCpu(measured: Measured<Rate>): string {
  const [newUs = [], oldUs = []] = ['NEW', 'OLD'].map((name) => measured(name).map((rate) => rate.cpuUsPerRequest))
  const { median: middle, min, max } = spreadOf(ratios(newUs, oldUs))
  const medians = `${amount(median(newUs))} / ${amount(median(oldUs))} µs`
  const range = `(${min.toFixed(3)} – ${max.toFixed(3)})`
  return `CPU time for a request, NEW / OLD: ${middle.toFixed(3)} × ${range}, ${medians}`
}
