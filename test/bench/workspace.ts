import { mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Subprocess } from 'bun'

/** The folder of the project. */
export const PROJECT = resolve(import.meta.dir, '../..')
/** A folder for temporary files. */
export const SCRATCH = join(PROJECT, 'dist/bench')

const TMPFS_TYPE = 0x01021994

/** A child process. This process reads its stdout. */
type Child = Subprocess<'ignore', 'pipe', 'inherit'>

/** A temporary folder, and the programs that use it. */
export interface Workspace {
  /** The path of a file in the folder. */
  file(name: string): string
  /** Starts a program on a core, or on a list of cores for taskset. Of the environment, the program gets only `PATH`. */
  spawn(cores: number | string, command: readonly string[]): Child
  /** Runs a program there to its end and returns its stdout. Rejects if the program fails. */
  run(cores: number | string, command: readonly string[]): Promise<string>
  /** Kills the programs and deletes the folder. */
  clear(): void
}

/** Makes a workspace on a real disk. In memory, a sync costs nothing. */
export function makeWorkspace(): Workspace {
  mkdirSync(SCRATCH, { recursive: true })
  if (statfsSync(SCRATCH).type === TMPFS_TYPE) throw new Error('dist/bench is in memory: a sync there means nothing.')
  const folder = mkdtempSync(join(SCRATCH, 'run-'))
  const children = new Set<Child>()

  const spawn = (cores: number | string, command: readonly string[]): Child => {
    const child = Bun.spawn(['taskset', '-c', String(cores), ...command], {
      env: { PATH: process.env.PATH ?? '', HOME: folder, NODE_ENV: 'production' },
      cwd: PROJECT,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    children.add(child)
    void child.exited.then(() => children.delete(child))
    return child
  }

  return {
    file: (name) => join(folder, name),
    spawn,
    async run(cores, command) {
      const child = spawn(cores, command)
      const [stdout, exitCode] = await Promise.all([child.stdout.text(), child.exited])
      if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}: ${stdout}`)
      return stdout
    },
    clear() {
      for (const child of children) child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
