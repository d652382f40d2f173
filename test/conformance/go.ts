import { join } from 'node:path'
import { program } from '../support/requirement.ts'
import { HERE, runWell, SCRATCH } from './tools.ts'

export const GO = program('go')

/** Builds a Go program of a folder here, whose go.mod and go.sum fix all versions. Returns the path of the program. */
export async function buildGo(folder: string, program: string): Promise<string> {
  const output = join(SCRATCH, 'bin', folder)
  await runWell(['go', 'build', '-o', output, program], { cwd: join(HERE, folder) })
  return output
}
