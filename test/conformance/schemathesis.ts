import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { HERE, python, run, SCRATCH } from './tools.ts'

/** All phases and checks of Schemathesis. */
const PHASES = ['examples', 'coverage', 'fuzzing', 'stateful']
const EVERYTHING = ['--checks', 'all', '--mode', 'all', '--phases', PHASES.join(',')]

/** The exit codes of a complete run. */
const EXIT_PASSED = 0
const EXIT_FAILED = 1

/** The fields of the report of `--report json` that are used here. */
interface Report {
  readonly complete: boolean
  readonly operations: { readonly total: number; readonly tested: number }
  readonly phases: Readonly<Record<string, { readonly status: string }>>
  readonly test_cases: { readonly generated: number }
  readonly failures: readonly unknown[]
  readonly errors: readonly unknown[]
  /** The operations of each kind of warning. */
  readonly warnings: Readonly<Record<string, readonly unknown[]>>
}

/** Runs Schemathesis against a server. The document is a file or a URL. */
export async function runSchemathesis(document: string, server: { url: string; token: string }) {
  const reportFile = join(SCRATCH, 'schemathesis.json')
  const seed = process.env.SCHEMATHESIS_SEED
  rmSync(reportFile, { force: true })
  const { exitCode, stdout, stderr } = await run([
    ...[python('schemathesis'), '--config-file', join(HERE, 'schemathesis.toml'), 'run', document, '--url', server.url],
    ...['--header', `Authorization: Bearer ${server.token}`, ...EVERYTHING],
    ...['--report', 'json', '--report-json-path', reportFile],
    ...(seed === undefined ? [] : ['--seed', seed]),
  ])
  if (exitCode !== EXIT_PASSED && exitCode !== EXIT_FAILED) throw new Error(`Schemathesis: ${stdout}${stderr}`)
  const report: Report = JSON.parse(readFileSync(reportFile, 'utf8'))
  const { operations, phases, failures, errors, warnings } = report
  return {
    // The seed is too long for a JSON number.
    seed: /^Seed: (\d+)$/m.exec(stdout)?.[1],
    stdout,
    exitCode,
    cases: report.test_cases.generated,
    isWhole:
      report.complete &&
      operations.tested === operations.total &&
      PHASES.every((name) => phases[name]?.status === 'success'),
    failures: [...failures, ...errors],
    // Generated deletes name no plant, so all are refused, those with a precondition by 412. Puts without one succeed.
    warnings: Object.fromEntries(
      Object.entries(warnings)
        .map(([name, about]) => [name, name === 'validation_mismatch' ? about.filter(isNoDelete) : about] as const)
        .filter(([, about]) => about.length > 0),
    ),
  }
}

const isNoDelete = (operation: unknown): boolean => operation !== 'DELETE /plants/{id}'
