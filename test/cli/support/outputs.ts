import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore, type serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { metricsUrlOf } from '../../support/metrics.ts'

/** A server that has answered requests, and the folder of its files. */
export interface UsedServer {
  readonly server: Pick<Awaited<ReturnType<typeof serve>>, 'pid' | 'stdout' | 'stderr'>
  readonly folder: string
  readonly database: string
  /** All answers to clients, heads included. */
  readonly answers: string
}

/**
 * Every output of a running server and of the commands beside it that others may read: files, logs, answers, and what the
 * system shows of a process. A new file, answer or output belongs here, too.
 */
export const OUTPUTS: Readonly<Record<string, (used: UsedServer) => string | Promise<string>>> = {
  answers: ({ answers }) => answers,
  metrics: async ({ server }) => (await fetch(`${metricsUrlOf(server)}/metrics`)).text(),
  log: ({ server }) => server.stdout(),
  stderr: ({ server }) => server.stderr(),
  files: ({ folder }) => filesIn(folder),
  process: ({ server }) => processText(server.pid),
  ...Object.fromEntries(
    ['token list', 'token list --json', 'user list', 'status', 'status --json', 'check', 'export', 'backup -'].map(
      (command) => [command, ({ database }) => outputOf(...command.split(' '), '--database', database)],
    ),
  ),
  copy: ({ database }) =>
    withFolder((path) => outputAndFiles(path, 'copy', '--snapshot', '--from', database, '--to', join(path, 'copy.db'))),
  backup: ({ database }) => withFolder((path) => outputAndFiles(path, 'backup', '--dir', path, '--database', database)),
}

/** The names and bytes of all files in a folder and its subfolders, a character for each byte. */
export const filesIn = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => `${path}\n${readFileSync(path, 'latin1')}\n`)
    .join('')

/** All that the system shows of a process to its owner or others (proc(5)); only its id on systems without `/proc`. */
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

/** The output of a command, and the files that it has made in a folder. */
async function outputAndFiles(folder: string, ...args: readonly string[]): Promise<string> {
  const output = await outputOf(...args)
  return output + filesIn(folder)
}

async function withFolder<T>(use: (path: string) => Promise<T>): Promise<T> {
  using folder = makeFolder()
  return await use(folder.path)
}
