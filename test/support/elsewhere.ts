import { resolve } from 'node:path'
import { runProgram } from './program.ts'

const OPEN = resolve(import.meta.dir, '../../src/store/open.ts')

/** Runs a program in a process of its own, to its end. In it `store` is the store of this database. Rejects if it failed. */
export async function runElsewhere(database: string, program: string): Promise<void> {
  const { exitCode, stderr } = await runProgram([
    process.execPath,
    '-e',
    `const { openStore } = await import(${JSON.stringify(OPEN)})
       const store = await openStore(${JSON.stringify(database)}, (error) => { throw error })
       ${program}
       await store.close()`,
  ])
  if (exitCode !== 0) throw new Error(`the other process ended with ${exitCode}\n${stderr}`)
}
