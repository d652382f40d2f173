/**
 * Compares the throughput and the CPU time per request of two executables: see README.md. Usage:
 * `bun run bench:compare OLD NEW [WORKLOAD...] [--rounds N] [--seconds N]`. The exit code is 1 if a workload failed, and 2 if the
 * comparison cannot run.
 */

import { ratios } from './claims.ts'
import { type Comparison, parseComparison, USAGE } from './compare-options.ts'
import { COMPARED, type Workload } from './compare-workloads.ts'
import { makeDatabase } from './databases.ts'
import { measureRate, type Rate } from './load/wrk.ts'
import { align, amount } from './report.ts'
import { requireMachine } from './requirements.ts'
import { interleave, type Measured } from './rounds.ts'
import { startPlantstore } from './servers.ts'
import { median, spreadOf } from './statistics.ts'
import { makeWorkspace, pinToLoadCore, type Workspace } from './workspace.ts'

const EXIT_FAILED = 1
const EXIT_CANNOT_RUN = 2
const EXIT_SIGNAL = 130

const comparison = prepare()
let workspace: Workspace | undefined
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => {
    workspace?.clear()
    process.exit(EXIT_SIGNAL)
  })
}
for (const workload of comparison.workloads) {
  workspace = makeWorkspace()
  try {
    console.log(report(workload, await compare(workspace, workload)))
  } catch (error) {
    console.log(`${workload.name}: FAILED: ${error instanceof Error ? error.message : error}\n`)
    process.exitCode = EXIT_FAILED
  } finally {
    workspace.clear()
  }
}

/** Reads the command line and checks the machine. Ends the process if the comparison cannot run. */
function prepare(): Comparison {
  try {
    const parsed = parseComparison(process.argv.slice(2))
    requireMachine(['taskset', 'wrk'])
    pinToLoadCore()
    return parsed
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`)
    process.exit(EXIT_CANNOT_RUN)
  }
}

/** Starts both executables, each on its own copy of one database, and measures them in turns. */
async function compare(workspace: Workspace, { name, content, load }: Workload): Promise<Measured<Rate>> {
  const { rounds, seconds, executables } = comparison
  // The old executable makes the database, because it would refuse a newer schema. The new one migrates its copy.
  const seed = await makeDatabase(workspace.file('seed.db'), content, (path, user) =>
    createTokenBy(executables.OLD, path, user),
  )
  const contestants = COMPARED.map(async (side) => {
    const database = seed.copy(workspace.file(`${side}.db`))
    const server = await startPlantstore(workspace, database, { executable: executables[side] })
    const sideLoad = load(seed.tokensFile)
    return { name: side, measure: () => measureRate(workspace, server, sideLoad, seconds) }
  })
  return interleave(await Promise.all(contestants), rounds, (text) => console.error(`${name}: ${text}`))
}

/** Lets an executable create a token, and the database if it is missing. */
async function createTokenBy(executable: string, database: string, user: string): Promise<string> {
  const command = [executable, 'token', 'create', '--database', database, '--user', user]
  const { stdout, stderr, exitCode } = Bun.spawnSync(command)
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}: ${stderr}`)
  return stdout.toString().trim()
}

/** The text that is printed for a workload: ratios with their spread, and the medians of both executables. */
function report({ name, title }: Workload, measured: Measured<Rate>): string {
  const line = (label: string, unit: string, read: (rate: Rate) => number) => {
    const [oldValues, newValues] = COMPARED.map((side) => measured(side).map(read))
    if (oldValues === undefined || newValues === undefined) throw new Error('nothing was measured')
    const ratio = spreadOf(ratios(newValues, oldValues))
    return [
      `  ${label}, NEW/OLD`,
      ratio.median.toFixed(3),
      `(${ratio.min.toFixed(3)} – ${ratio.max.toFixed(3)})`,
      `${amount(median(newValues))} / ${amount(median(oldValues))} ${unit}`,
    ]
  }
  return [
    `${name}: ${title}`,
    ...align([
      line('throughput', 'requests/s', ({ perSecond }) => perSecond),
      line('CPU time', 'µs for a request', ({ cpuUsPerRequest }) => cpuUsPerRequest),
    ]),
    '',
  ].join('\n')
}
