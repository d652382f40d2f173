import { reportRow } from './report.ts'
import { failedRow, measuredRow, type ResultRow } from './results.ts'
import type { Bench, Row } from './rows/row.ts'
import { makeWorkspace, type Workspace } from './workspace.ts'

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
export async function inWorkspace<T>(work: (workspace: Workspace) => Promise<T>): Promise<T> {
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
    return measuredRow(row, await inWorkspace((workspace) => row.run({ ...bench, workspace, say })))
  } catch (error) {
    return failedRow(row, messageOf(error))
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
