import { buildGo, runWell } from './tools.ts'

/** Spectral's number of a warning. An error is 0, a remark has a larger number. */
const WARNING = 1

/** A rule that a document breaks, and the place; null is the whole document. */
interface Finding {
  readonly code: string
  readonly path: readonly string[] | null
  readonly severity: number
}

/** Lints a document by all recommended rules of vacuum. Returns errors and warnings. */
export async function runVacuum(document: string) {
  const vacuum = await buildGo('vacuum', 'github.com/daveshanley/vacuum')
  const findings: Finding[] = JSON.parse(await runWell([vacuum, 'spectral-report', '--stdout', document]))
  return findings.filter(({ severity }) => severity <= WARNING).map(({ code, path }) => ({ code, at: path?.join('.') }))
}
