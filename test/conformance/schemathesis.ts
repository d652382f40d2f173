import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { python, run, SCRATCH } from './tools.ts'

/** All that Schemathesis has: nothing is left out, and nothing is silenced. */
const PHASES = ['examples', 'coverage', 'fuzzing', 'stateful']
const EVERYTHING = ['--checks', 'all', '--mode', 'all', '--phases', PHASES.join(',')]

/** The exit codes of a run that came to its end. */
const EXIT_PASSED = 0
const EXIT_FAILED = 1

/** The report that `--report json` writes, as far as it is read here. */
interface Report {
  readonly complete: boolean
  readonly operations: { readonly total: number; readonly tested: number }
  readonly phases: Readonly<Record<string, { readonly status: string }>>
  readonly test_cases: { readonly generated: number }
  readonly failures: readonly unknown[]
  readonly errors: readonly unknown[]
  /** The operations that each kind of warning is about. */
  readonly warnings: Readonly<Record<string, readonly unknown[]>>
}

/** Runs Schemathesis with a document, a file or an URL, against a server. */
export async function runSchemathesis(document: string, server: { url: string; token: string }, more: string[] = []) {
  const reportFile = join(SCRATCH, 'schemathesis.json')
  const seed = process.env.SCHEMATHESIS_SEED
  rmSync(reportFile, { force: true })
  const { exitCode, stdout, stderr } = await run([
    ...[python('schemathesis'), 'run', document, '--url', server.url],
    ...['--header', `Authorization: Bearer ${server.token}`, ...EVERYTHING],
    ...['--report', 'json', '--report-json-path', reportFile],
    ...(seed === undefined ? [] : ['--seed', seed]),
    ...more,
  ])
  if (exitCode !== EXIT_PASSED && exitCode !== EXIT_FAILED) throw new Error(`Schemathesis: ${stdout}${stderr}`)
  const report: Report = JSON.parse(readFileSync(reportFile, 'utf8'))
  const { operations, phases, failures, errors, warnings } = report
  return {
    // Too long for a number of JSON.
    seed: /^Seed: (\d+)$/m.exec(stdout)?.[1],
    stdout,
    exitCode,
    cases: report.test_cases.generated,
    isWhole:
      report.complete &&
      operations.tested === operations.total &&
      PHASES.every((name) => phases[name]?.status === 'success'),
    failures: [...failures, ...errors],
    warnings: Object.fromEntries(Object.entries(warnings).filter(([, about]) => about.length > 0)),
  }
}
