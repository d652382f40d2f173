import { runProgram } from './program.ts'
import { program } from './requirement.ts'

export const PROMTOOL = program('promtool')

/** Runs promtool, with what it reads on stdin, and returns all that it says. */
export async function runPromtool(args: readonly string[], { stdin = '', cwd = '.' } = {}) {
  const { stdout, stderr, exitCode } = await runProgram(['promtool', ...args], { cwd, stdin })
  return { text: stdout + stderr, exitCode }
}
