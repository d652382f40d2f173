import { join } from 'node:path'
import { HERE, runWell, SCRATCH } from './tools.ts'

/** Whether the tools that are written in Go are skipped: where Go is missing. With `CI=true` they fail instead. */
export const GO_IS_SKIPPED = process.env.CI !== 'true' && Bun.which('go') === null
/** For the names of their tests, to say that they are skipped. */
export const GO_NOTE = GO_IS_SKIPPED ? ' (skipped: go is missing)' : ''

/** Builds a program in a folder here that has a go.mod: it and go.sum name all versions. Returns where the program is. */
export async function buildGo(folder: string, program: string): Promise<string> {
  const output = join(SCRATCH, 'bin', folder)
  await runWell(['go', 'build', '-o', output, program], { cwd: join(HERE, folder) })
  return output
}
