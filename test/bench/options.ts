import { parseArgs } from 'node:util'
import { PRIVATE } from './database-server.ts'
import type { Row } from './rows/row.ts'
import { POSTGRES_ROWS, ROWS } from './rows/rows.ts'

/** The options of a run. */
export interface Options {
  readonly rows: readonly Row[]
  readonly rounds: number
  readonly seconds: number
  /** The URL of a PostgreSQL server, or `private`. If set, the rows are `POSTGRES_ROWS`. */
  readonly database: string | undefined
  /** Whether the run has all rows and is at least as long as by default. Only such a run is published. */
  readonly isWhole: boolean
}

type Named = Pick<Row, 'name' | 'title'>

const ROUNDS = 5
const SECONDS = 3

/** A line of a usage for each row or workload. */
export const listed = (all: readonly Named[]) => all.map(({ name, title }) => `  ${name.padEnd(16)}${title}`).join('\n')

/** The usage of the command. */
export const USAGE = `Usage: bun run bench [ROW...] [--rounds ${ROUNDS}] [--seconds ${SECONDS}] [--database URL]

Rows (all of them if none is named):
${listed(ROWS)}

Rows with --database, on the PostgreSQL server of that URL, whose user can make databases; with "${PRIVATE}" one is started:
${listed(POSTGRES_ROWS)}`

/** Reads the command line. Throws if an option or a row is unknown. */
export function parseOptions(args: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { rounds: { type: 'string' }, seconds: { type: 'string' }, database: { type: 'string' } },
    allowPositionals: true,
  })
  const rounds = parseCount('--rounds', values.rounds, ROUNDS)
  const seconds = parseCount('--seconds', values.seconds, SECONDS)
  const { database } = values
  const all = database === undefined ? ROWS : POSTGRES_ROWS
  const rows = choose(all, positionals)
  return {
    rows,
    rounds,
    seconds,
    database,
    isWhole: rows.length === all.length && rounds >= ROUNDS && seconds >= SECONDS,
  }
}

/** Those of these names, or all if none is named. Throws if a name is unknown. */
export function choose<T extends Named>(all: readonly T[], names: readonly string[]): readonly T[] {
  const unknown = names.filter((name) => !all.some((each) => each.name === name))
  if (unknown.length > 0) throw new Error(`There is no ${unknown.join(', ')}.`)
  return all.filter(({ name }) => names.length === 0 || names.includes(name))
}

/** Reads a number from 1 to 999. Throws if the text is something else. */
export function parseCount(name: string, text: string | undefined, defaultCount: number): number {
  if (text === undefined) return defaultCount
  if (!/^[1-9]\d{0,2}$/.test(text)) throw new Error(`${name} must be a whole number from 1 to 999.`)
  return Number(text)
}
