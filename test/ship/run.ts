import { resolve } from 'node:path'
import { runProgram } from '../support/program.ts'

/** The project that is shipped. */
export const PROJECT = resolve(import.meta.dir, '../..')

/** Runs a program in the project, and returns what it prints on stdout. Rejects with all that it prints if it fails. */
export async function runWell(command: readonly string[], cwd = PROJECT): Promise<string> {
  const { stdout, stderr, exitCode } = await runIn(command, cwd)
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}\n${stdout}${stderr}`)
  return stdout
}

/** Runs a program to its end, by default in the project. `bun` is the one that runs this. */
export function runIn([program = '', ...args]: readonly string[], cwd = PROJECT) {
  return runProgram([program === 'bun' ? process.execPath : program, ...args], {
    cwd,
    env: { ...process.env, NO_COLOR: '1' },
  })
}
