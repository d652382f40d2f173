import { runProgram } from './program.ts'
import { program } from './requirement.ts'

export const PROMTOOL = program('promtool')

/** Runs promtool with this text on stdin. Returns all its output. */
export async function runPromtool(args: readonly string[], { stdin = '', cwd = '.' } = {}) {
  const { stdout, stderr, exitCode } = await runProgram(['promtool', ...args], { cwd, stdin })
  return { text: stdout + stderr, exitCode }
}
