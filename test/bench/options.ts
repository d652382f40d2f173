import { parseArgs } from 'node:util'
import type { Row } from './rows/row.ts'
import { ROWS } from './rows/rows.ts'

/** What a run of the benchmark shall do. */
export interface Options {
  readonly rows: readonly Row[]
  readonly rounds: number
  readonly seconds: number
  /** Whether it is the whole benchmark, and no shorter than by default: what is published. */
  readonly isWhole: boolean
}

const ROUNDS = 5
const SECONDS = 3

/** Says how the command is used. */
export const USAGE = `Usage: bun run bench [ROW...] [--rounds ${ROUNDS}] [--seconds ${SECONDS}]

Rows (all of them if none is named):
${ROWS.map(({ name, title }) => `  ${name.padEnd(16)}${title}`).join('\n')}`

/** Reads the command line. Throws if it names what there is not. */
export function parseOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { rounds: { type: 'string' }, seconds: { type: 'string' } },
    allowPositionals: true,
  })
  const rounds = parseCount('--rounds', values.rounds, ROUNDS)
  const seconds = parseCount('--seconds', values.seconds, SECONDS)
  const unknown = positionals.filter((name) => !ROWS.some((row) => row.name === name))
  if (unknown.length > 0) throw new Error(`There is no row ${unknown.join(', ')}.`)
  const rows = ROWS.filter(({ name }) => positionals.length === 0 || positionals.includes(name))
  return { rows, rounds, seconds, isWhole: rows.length === ROWS.length && rounds >= ROUNDS && seconds >= SECONDS }
}

function parseCount(name: string, text: string | undefined, defaultCount: number): number {
  if (text === undefined) return defaultCount
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new Error(`${name} must be a whole number from 1 to 999.`)
  return Number(text)
}
