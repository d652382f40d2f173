import { runProgram } from './program.ts'

/** Whether the tests that ask Prometheus' own tool are skipped: where there is none. With `CI=true` they fail instead. */
export const PROMTOOL_IS_SKIPPED = process.env.CI !== 'true' && Bun.which('promtool') === null
/** For the names of those tests, to say that they are skipped. */
export const PROMTOOL_NOTE = PROMTOOL_IS_SKIPPED ? ' (skipped: there is no promtool)' : ''

/** Runs promtool, with what it reads on stdin, and returns all that it says. */
export async function runPromtool(args: readonly string[], { stdin = '', cwd = '.' } = {}) {
  const { stdout, stderr, exitCode } = await runProgram(['promtool', ...args], { cwd, stdin })
  return { text: stdout + stderr, exitCode }
}
