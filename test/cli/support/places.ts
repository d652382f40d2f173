import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore, type serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { metricsUrlOf } from '../../support/metrics.ts'

/** A server that was used, and the folder in which it has its files. */
export interface Used {
  readonly server: Pick<Awaited<ReturnType<typeof serve>>, 'pid' | 'stdout' | 'stderr'>
  readonly folder: string
  readonly database: string
  /** All that clients were answered, heads included. */
  readonly answers: string
}

/**
 * Every place where a server that runs, and the commands beside it, leave what others may read: files, logs, answers and
 * what the system tells of a process. Whoever adds such a place (a file, an answer, an output) adds it here.
 */
export const PLACES: Readonly<Record<string, (used: Used) => string | Promise<string>>> = {
  answers: ({ answers }) => answers,
  metrics: async ({ server }) => (await fetch(`${metricsUrlOf(server)}/metrics`)).text(),
  log: ({ server }) => server.stdout(),
  stderr: ({ server }) => server.stderr(),
  files: ({ folder }) => filesIn(folder),
  process: ({ server }) => processText(server.pid),
  'token list': ({ database }) => outputOf('token', 'list', '--database', database),
  'token list --json': ({ database }) => outputOf('token', 'list', '--json', '--database', database),
  'user list': ({ database }) => outputOf('user', 'list', '--database', database),
  status: ({ database }) => outputOf('status', '--database', database),
  'status --json': ({ database }) => outputOf('status', '--json', '--database', database),
  check: ({ database }) => outputOf('check', '--database', database),
  export: ({ database }) => outputOf('export', '--database', database),
  copy: ({ database }) =>
    withFolder((path) => outputAndFiles(path, 'copy', '--snapshot', '--from', database, '--to', join(path, 'copy.db'))),
  'backup -': ({ database }) => outputOf('backup', '-', '--database', database),
  backup: ({ database }) => withFolder((path) => outputAndFiles(path, 'backup', '--dir', path, '--database', database)),
}

/** The names and bytes of all files in a folder, and in those that it has, byte for character. */
export const filesIn = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => `${path}\n${readFileSync(path, 'latin1')}\n`)
    .join('')

/** What any user of the machine, or its owner, is told of a process (proc(5)); its number where there is no such file system. */
function processText(pid: number): string {
  if (process.platform !== 'linux') return String(pid)
  const files = ['cmdline', 'environ', 'comm', 'status', 'stat', 'maps']
  const threads = readdirSync(`/proc/${pid}/task`).map((task) => `task/${task}/comm`)
  return [...files, ...threads].map((file) => readFileSync(`/proc/${pid}/${file}`, 'latin1')).join('\n')
}

async function outputOf(...args: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await runPlantstore(args)
  if (exitCode !== 0) throw new Error(`plantstore ${args.join(' ')} ended with ${exitCode}: ${stderr}`)
  return stdout + stderr
}

/** The same, and the files that a command has made in a folder. */
async function outputAndFiles(folder: string, ...args: readonly string[]): Promise<string> {
  const output = await outputOf(...args)
  return output + filesIn(folder)
}

async function withFolder<T>(use: (path: string) => Promise<T>): Promise<T> {
  using folder = makeFolder()
  return await use(folder.path)
}
