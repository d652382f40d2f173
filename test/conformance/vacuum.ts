import { buildGo } from './go.ts'
import { runWell } from './tools.ts'

/** Spectral's number for a warning. An error is 0; a larger number is a remark. */
const WARNING = 1

/** A rule that a document breaks, and where; null is the whole document. */
interface Finding {
  readonly code: string
  readonly path: readonly string[] | null
  readonly severity: number
}

/** Lints a document with all the rules that vacuum recommends. Returns errors and warnings. */
export async function runVacuum(document: string) {
  const vacuum = await buildGo('vacuum', 'github.com/daveshanley/vacuum')
  const findings: Finding[] = JSON.parse(await runWell([vacuum, 'spectral-report', '--stdout', document]))
  return findings.filter(({ severity }) => severity <= WARNING).map(({ code, path }) => ({ code, at: path?.join('.') }))
}
