/**
 * Compares the throughput and the CPU time per request of two executables: see README.md. Usage:
 * `bun run bench:compare OLD NEW [WORKLOAD...] [--rounds N] [--seconds N]`. The exit code is 1 if a workload failed, and 2 if the
 * comparison cannot run. A goal that is missed is printed, and does not change the exit code.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type Content, makeDatabase } from './databases.ts'
import { runOpenLoop } from './load/open-loop.ts'
import { createLoad, freshIds, type Load, listLoad, mixLoad, pagesLoad, type Rate } from './load/wrk.ts'
import { requireMachine } from './machine.ts'
import type { Goal, RowResult } from './results.ts'
import { compareRates, interleave } from './rounds.ts'
import { LATENCY_TIMES, listsBesideCreates } from './rows/latency.ts'
import { memoryAfterRequests } from './rows/process.ts'
import type { Bench, Row } from './rows/row.ts'
import { amount, choose, clearOnSignals, listed, parseCount, prepare, runRows } from './run.ts'
import { type Server, startPlantstore } from './servers.ts'
import { median, ratios, spreadOf } from './statistics.ts'
import { pinToLoadCore } from './workspace.ts'

/** Both executables, each on its own copy of one database. */
type Both = Awaited<ReturnType<typeof startBoth>>

/** What is compared on a database. */
interface Workload extends Pick<Row, 'name' | 'title'> {
  readonly content: Content
  readonly hasSlowSyncs?: boolean
  run(bench: Bench, both: Both): Promise<RowResult>
}

const ROUNDS = 10
const SECONDS = 2
const EXIT_FAILED = 1
const ONE_USER: Content = { users: 1, plantsPerUser: 1000 }
const MANY_USERS: Content = { users: 10_000, plantsPerUser: 100 }
const SOME_USERS: Content = { users: 1000, plantsPerUser: 100 }
/** The goal of reads, which shall not become slower. */
const SAME: Goal = { goal: 1.05, floor: 0.95 }

/** Compares the throughput under a load, and the CPU time of a request. */
const throughput =
  (load: (tokensFile: string) => Load, goal: Goal) =>
  async (bench: Bench, { servers, tokensFile }: Both) => {
    const loaded = servers.map((server) => ({ ...server, load: load(tokensFile) }))
    const { figures, ratio, measured } = await compareRates(bench, loaded)
    const claim = { name: 'throughput, NEW / OLD', unit: '×', ...goal } as const
    const notes = [describeCpu(measured('NEW'), measured('OLD'))]
    return { figures, claims: [{ ...claim, rounds: ratio('NEW', 'OLD') }], notes }
  }

/** Compares another figure. `measurer` returns the function that measures one server. */
const figure =
  (unit: string, measurer: (bench: Bench, tokensFile: string) => (server: Server) => Promise<number>, goal: Goal) =>
  async (bench: Bench, { servers, tokensFile }: Both) => {
    const contestants = servers.map(({ name, server }) => {
      const measure = measurer(bench, tokensFile)
      return { name, measure: () => measure(server) }
    })
    const measured = await interleave(contestants, bench)
    const claim = { name: 'NEW / OLD', unit: '×', ...goal } as const
    return {
      figures: servers.map(({ name }) => ({ name, unit, rounds: measured(name) })),
      claims: [{ ...claim, rounds: ratios(measured('NEW'), measured('OLD')) }],
    }
  }

const creates = (connections: number, goal: Goal): Workload => ({
  name: `create-${connections}`,
  title: `create, one user, ${connections} ${connections === 1 ? 'connection' : 'connections'}, durable`,
  content: ONE_USER,
  run: throughput((tokensFile) => createLoad(tokensFile, connections), goal),
})

const WORKLOADS: readonly Workload[] = [
  creates(1, { goal: 1.2, floor: 1 }),
  creates(4, { goal: 1.3, floor: 1.1 }),
  creates(64, { goal: 1.3, floor: 1.1 }),
  {
    name: 'list',
    title: 'list of 20, one user, 64 connections',
    content: ONE_USER,
    run: throughput(listLoad, SAME),
  },
  {
    name: 'list-users',
    title: 'list of 20, 10 000 users in random order, 64 connections',
    content: MANY_USERS,
    run: throughput(listLoad, SAME),
  },
  {
    name: 'list-new',
    title: 'list of 20 that no cache has, one user, 64 connections',
    content: ONE_USER,
    run: throughput((tokensFile) => pagesLoad(tokensFile, 0, 980), SAME),
  },
  {
    name: 'mix',
    title: '90 % list of 20, 10 % create, 1 000 users in random order, 64 connections',
    content: SOME_USERS,
    run: throughput(mixLoad, SAME),
  },
  {
    name: 'list-p99',
    title: 'p99 of 10 000 lists a second beside 1 000 creates a second, open loop, each sync delayed by 5 ms',
    content: SOME_USERS,
    hasSlowSyncs: true,
    run: figure('ms', listP99, { goal: 0.7, floor: 1 }),
  },
  {
    name: 'memory',
    title: 'resident memory after a million mixed requests of 10 000 users',
    content: MANY_USERS,
    run: figure('MB', memory, { goal: 0.9, floor: 1 }),
  },
]

function listP99(bench: Bench, tokensFile: string) {
  const firstId = freshIds()
  return async (server: Server) => {
    const schedules = listsBesideCreates(tokensFile, firstId())
    const [lists] = await runOpenLoop(bench, server, schedules, LATENCY_TIMES * bench.seconds)
    return lists?.p99Ms ?? Number.NaN
  }
}

function memory({ workspace }: Bench, tokensFile: string) {
  const load = mixLoad(tokensFile)
  return (server: Server) => memoryAfterRequests(workspace, server, load)
}

const USAGE = `Usage: bun run bench:compare OLD NEW [WORKLOAD...] [--rounds ${ROUNDS}] [--seconds ${SECONDS}]

OLD and NEW are executables of the service. Workloads (all of them if none is named):
${listed(WORKLOADS)}`

const { rows, rounds, seconds } = prepare(USAGE, () => {
  const { values, positionals } = parseArgs({
    options: { rounds: { type: 'string' }, seconds: { type: 'string' } },
    allowPositionals: true,
  })
  const [oldPath = '', newPath = '', ...names] = positionals
  if (!existsSync(oldPath) || !existsSync(newPath)) throw new Error('Name two executables, the old one first.')
  requireMachine(['taskset', 'wrk'])
  pinToLoadCore()
  const executables = { OLD: resolve(oldPath), NEW: resolve(newPath) }
  const rows = choose(WORKLOADS, names).map(({ content, hasSlowSyncs, run, ...row }) => ({
    ...row,
    run: async (bench: Bench) => run(bench, await startBoth(bench, content, executables, hasSlowSyncs)),
  }))
  return {
    rows,
    rounds: parseCount('--rounds', values.rounds, ROUNDS),
    seconds: parseCount('--seconds', values.seconds, SECONDS),
  }
})
clearOnSignals()
const peers = { present: [], missing: [] }
const results = await runRows(rows, { rounds, seconds, peers, databaseServer: undefined })
if (results.some(({ failure }) => failure !== undefined)) process.exitCode = EXIT_FAILED

type Executables = Readonly<Record<'OLD' | 'NEW', string>>

/** Starts both executables, each on its own copy of one database. */
async function startBoth({ workspace }: Bench, content: Content, executables: Executables, hasSlowSyncs = false) {
  // The old executable makes the database, because it would refuse a newer schema. The new one migrates its copy.
  const seed = await makeDatabase(workspace.file('seed.db'), content, (path, user) =>
    createTokenBy(executables.OLD, path, user),
  )
  const started = Object.entries(executables).map(async ([name, executable]) => {
    const database = seed.copy(workspace.file(`${name}.db`))
    return { name, server: await startPlantstore(workspace, database, { executable, hasSlowSyncs }) }
  })
  return { servers: await Promise.all(started), tokensFile: seed.tokensFile }
}

function describeCpu(newRates: readonly Rate[], oldRates: readonly Rate[]): string {
  const [newUs, oldUs] = [newRates, oldRates].map((rates) => rates.map(({ cpuUsPerRequest }) => cpuUsPerRequest))
  if (newUs === undefined || oldUs === undefined) throw new Error('nothing was measured')
  const ratio = spreadOf(ratios(newUs, oldUs))
  const range = `(${ratio.min.toFixed(3)} – ${ratio.max.toFixed(3)})`
  const medians = `${amount(median(newUs))} / ${amount(median(oldUs))} µs`
  return `CPU time for a request, NEW / OLD: ${ratio.median.toFixed(3)} × ${range}, ${medians}`
}

/** Lets an executable create a token, and the database if it is missing. */
async function createTokenBy(executable: string, database: string, user: string): Promise<string> {
  const command = [executable, 'token', 'create', '--database', database, '--user', user]
  const { stdout, stderr, exitCode } = Bun.spawnSync(command)
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}: ${stderr}`)
  return stdout.toString().trim()
}
