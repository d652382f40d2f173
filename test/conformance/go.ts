import { join } from 'node:path'
import { program } from '../support/requirement.ts'
import { HERE, runWell, SCRATCH } from './tools.ts'

export const GO = program('go')

/** Builds a program in a folder here that has a go.mod: it and go.sum name all versions. Returns where the program is. */
export async function buildGo(folder: string, program: string): Promise<string> {
  const output = join(SCRATCH, 'bin', folder)
  await runWell(['go', 'build', '-o', output, program], { cwd: join(HERE, folder) })
  return output
}
