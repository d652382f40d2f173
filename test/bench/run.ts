import { parseArgs } from 'node:util'
import { type ResultRow, resultRow } from './results.ts'
import type { Bench, Row } from './rows/row.ts'
import { median, type Spread } from './statistics.ts'
import { makeWorkspace, type Workspace } from './workspace.ts'

type Named = Pick<Row, 'name' | 'title'>

const EXIT_SIGNAL = 130
const EXIT_CANNOT_RUN = 2

let current: Workspace | undefined

/** Prepares a run by `work`. If `work` throws, prints the reason and the usage, and ends the process. */
export function prepare<T>(usage: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    console.error(`${messageOf(error)}\n\n${usage}`)
    process.exit(EXIT_CANNOT_RUN)
  }
}

/** A line of a usage for each row or workload. */
export const listed = (all: readonly Named[]) => all.map(({ name, title }) => `  ${name.padEnd(16)}${title}`).join('\n')

/** Those of these names, or all if none is named. Throws if a name is unknown. */
export function choose<T extends Named>(all: readonly T[], names: readonly string[]): readonly T[] {
  const unknown = names.filter((name) => !all.some((each) => each.name === name))
  if (unknown.length > 0) throw new Error(`There is no ${unknown.join(', ')}.`)
  return all.filter(({ name }) => names.length === 0 || names.includes(name))
}

/** Reads the options and the other arguments of the command line. Throws if an option is unknown or its count is wrong. */
export function parseOptions(defaults: Pick<Bench, 'rounds' | 'seconds'>) {
  const string = { type: 'string' } as const
  const options = { rounds: string, seconds: string, database: string }
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  const count = (name: 'rounds' | 'seconds'): number => {
    const text = values[name] ?? String(defaults[name])
    if (!/^[1-9]\d{0,2}$/.test(text)) throw new Error(`--${name} must be a whole number from 1 to 999.`)
    return Number(text)
  }
  return { rounds: count('rounds'), seconds: count('seconds'), database: values.database, positionals }
}

/** Calls `clear` and ends the process on a signal. The workspace of `inWorkspace` is cleared too. */
export function clearOnSignals(clear = () => {}): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      current?.clear()
      clear()
      process.exit(EXIT_SIGNAL)
    })
  }
}

/** Does some work in a workspace, and clears the workspace. */
async function inWorkspace<T>(work: (workspace: Workspace) => Promise<T>): Promise<T> {
  const workspace = makeWorkspace()
  current = workspace
  try {
    return await work(workspace)
  } finally {
    workspace.clear()
  }
}

/** Measures rows one after the other, and prints the result of each. */
export async function runRows(
  rows: readonly Row[],
  bench: Omit<Bench, 'workspace' | 'say'>,
): Promise<readonly ResultRow[]> {
  const results: ResultRow[] = []
  for (const row of rows) {
    console.error(`${row.name}: ${row.title}`)
    const result = await runRow(row, bench)
    console.log(reportRow(result))
    results.push(result)
  }
  return results
}

async function runRow(row: Row, bench: Omit<Bench, 'workspace' | 'say'>): Promise<ResultRow> {
  const say = (text: string) => console.error(`  ${text}`)
  try {
    return resultRow(row, await inWorkspace((workspace) => row.run({ ...bench, workspace, say })))
  } catch (error) {
    return resultRow(row, { claims: [], figures: [] }, messageOf(error))
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The text that is printed for a row. */
function reportRow({ name, title, claims, figures, notes, failure }: ResultRow): string {
  const figureCells = figures.map((figure) => [
    `  ${figure.name}`,
    `${amount(figure.median)} ${figure.unit}`,
    spread(figure),
    figure.serverBusy === undefined ? '' : `server busy ${Math.round(median(figure.serverBusy) * 100)} %`,
  ])
  const claimCells = claims.map((claim) => [
    `  ${claim.name}`,
    `${amount(claim.median)} ${claim.unit}`,
    spread(claim),
    `goal ${claim.goal}, floor ${claim.floor}: ${claim.verdict}`,
  ])
  return [
    `${name}: ${title}`,
    ...(failure === undefined ? [] : [`  FAILED: ${failure}`]),
    ...align([...figureCells, ...claimCells]),
    ...notes.map((note) => `  ${note}`),
    '',
  ].join('\n')
}

const spread = ({ min, max }: Spread): string => `(${amount(min)} – ${amount(max)})`

/** Three digits, or all digits before the point. */
export function amount(value: number): string {
  if (Math.abs(value) >= 100) return value.toFixed(0)
  return value.toPrecision(3)
}

/** Pads the cells of lines, so that columns are aligned. */
function align(lines: readonly (readonly string[])[]): string[] {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)))
  return lines.map((cells) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
