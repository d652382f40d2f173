import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { runProgram } from '../support/program.ts'

/** The project, and these tests of it. */
export const PROJECT = resolve(import.meta.dir, '../..')
export const HERE = import.meta.dir
/** What is installed, generated and reported; none of it is kept. */
export const SCRATCH = join(PROJECT, 'dist/conformance')

const VENV = join(SCRATCH, 'venv')
const REQUIREMENTS = join(HERE, 'requirements.txt')

/** What a program printed, and how it ended. */
export interface Ran {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end, in the scratch folder unless said otherwise. */
export async function run(
  command: readonly string[],
  { cwd = SCRATCH, env = {}, input = '' }: RunOptions = {},
): Promise<Ran> {
  return runProgram(command, { cwd, env: { ...process.env, NO_COLOR: '1', ...env }, stdin: input })
}

interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
}

/** Runs a program and returns what it prints on stdout. Rejects with all that it prints if it fails. */
export async function runWell(command: readonly string[], options?: RunOptions): Promise<string> {
  const { exitCode, stdout, stderr } = await run(command, options)
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}:\n${stdout}${stderr}`)
  return stdout
}

/** A program of Python's that the requirements name. */
export const python = (program: string): string => join(VENV, 'bin', program)

/** Where Python's programs find each other. */
export const PYTHON_ENV = { PATH: `${join(VENV, 'bin')}:${process.env.PATH ?? ''}` }

/** A program of the packages that package.json here names. */
export const packaged = (program: string): readonly string[] => [
  process.execPath,
  '--bun',
  join(HERE, 'node_modules/.bin', program),
]

/** Installs the packages of both languages in the versions that are named here, unless they are there already. */
export async function installTools(): Promise<void> {
  mkdirSync(SCRATCH, { recursive: true })
  await runWell([process.execPath, 'install', '--frozen-lockfile', '--silent'], { cwd: HERE })
  // Where a generated client looks for its packages.
  rmSync(join(SCRATCH, 'node_modules'), { force: true })
  symlinkSync(join(HERE, 'node_modules'), join(SCRATCH, 'node_modules'))
  const installed = join(VENV, 'requirements.txt')
  if (existsSync(installed) && readFileSync(installed, 'utf8') === readFileSync(REQUIREMENTS, 'utf8')) return
  if (Bun.which('python3') === null) throw new Error('Missing: python3 (3.11 or later) with its module venv.')
  rmSync(VENV, { recursive: true, force: true })
  await runWell(['python3', '-m', 'venv', VENV])
  await runWell([python('pip'), 'install', '--quiet', '--requirement', REQUIREMENTS])
  cpSync(REQUIREMENTS, installed)
}
