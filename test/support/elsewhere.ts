import { resolve } from 'node:path'
import { startProgram } from './program.ts'

const OPEN = resolve(import.meta.dir, '../../src/store/open.ts')

/** Starts a program in a process of its own. In it `store` is the store of this database. */
export function startElsewhere(database: string, program: string) {
  const { child, ended: exited } = startProgram([
    process.execPath,
    '-e',
    `const { openStore } = await import(${JSON.stringify(OPEN)})
       const store = await openStore(${JSON.stringify(database)}, (error) => { throw error })
       ${program}
       await store.close()`,
  ])
  const ended = async () => {
    const { exitCode, stderr } = await exited
    if (exitCode !== 0) throw new Error(`the other process ended with ${exitCode}\n${stderr}`)
  }
  return {
    /** Resolves when the program has ended; rejects if it failed. */
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

/** Runs a program like `startElsewhere`, to its end. */
export const runElsewhere = (database: string, program: string): Promise<void> =>
  startElsewhere(database, program).ended()
