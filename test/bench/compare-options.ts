import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { type COMPARED, WORKLOADS, type Workload } from './compare-workloads.ts'
import { parseCount } from './options.ts'

/** Which executables are compared, and how. */
export interface Comparison {
  readonly executables: Readonly<Record<(typeof COMPARED)[number], string>>
  readonly workloads: readonly Workload[]
  readonly rounds: number
  readonly seconds: number
}

const ROUNDS = 10
const SECONDS = 2

/** The usage of the command. */
export const USAGE = `Usage: bun run bench:compare OLD NEW [WORKLOAD...] [--rounds ${ROUNDS}] [--seconds ${SECONDS}]

OLD and NEW are executables of the service. Workloads (all of them if none is named):
${WORKLOADS.map(({ name, title }) => `  ${name.padEnd(16)}${title}`).join('\n')}`

/** Reads the command line. Throws if an executable is missing or a workload is unknown. */
export function parseComparison(args: readonly string[]): Comparison {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { rounds: { type: 'string' }, seconds: { type: 'string' } },
    allowPositionals: true,
  })
  const [oldPath, newPath, ...names] = positionals
  if (oldPath === undefined || newPath === undefined) throw new Error('Name two executables, the old one first.')
  const missing = [oldPath, newPath].filter((path) => !existsSync(path))
  if (missing.length > 0) throw new Error(`There is no file ${missing.join(', ')}.`)
  const unknown = names.filter((name) => !WORKLOADS.some((workload) => workload.name === name))
  if (unknown.length > 0) throw new Error(`There is no workload ${unknown.join(', ')}.`)
  return {
    executables: { OLD: resolve(oldPath), NEW: resolve(newPath) },
    workloads: WORKLOADS.filter(({ name }) => names.length === 0 || names.includes(name)),
    rounds: parseCount('--rounds', values.rounds, ROUNDS),
    seconds: parseCount('--seconds', values.seconds, SECONDS),
  }
}
