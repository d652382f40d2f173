import { resolve } from 'node:path'
import { runProgram } from '../support/program.ts'

/** The project's folder. */
export const PROJECT = resolve(import.meta.dir, '../..')

/** Runs a program and returns its stdout. Rejects with all its output if it fails. */
export async function runWell(command: readonly string[], cwd = PROJECT): Promise<string> {
  const { stdout, stderr, exitCode } = await runIn(command, cwd)
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}\n${stdout}${stderr}`)
  return stdout
}

/** Runs a program, by default in the project's folder. `bun` stands for the Bun that runs this. */
export function runIn([program = '', ...args]: readonly string[], cwd = PROJECT) {
  return runProgram([program === 'bun' ? process.execPath : program, ...args], {
    cwd,
    env: { ...process.env, NO_COLOR: '1' },
  })
}
