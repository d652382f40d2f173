import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { runProgram } from '../support/program.ts'

/** The project's folder, and the folder of these tests. */
export const PROJECT = resolve(import.meta.dir, '../..')
export const HERE = import.meta.dir
/** The folder for installed packages, generated code and reports. Git ignores it. */
export const SCRATCH = join(PROJECT, 'dist/conformance')

const VENV = join(SCRATCH, 'venv')
const REQUIREMENTS = join(HERE, 'requirements.txt')

/** The output and the exit code of a program. */
export interface Ran {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program, by default in the scratch folder. */
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

/** Runs a program and returns its stdout. Rejects with all its output if it fails. */
export async function runWell(command: readonly string[], options?: RunOptions): Promise<string> {
  const { exitCode, stdout, stderr } = await run(command, options)
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}:\n${stdout}${stderr}`)
  return stdout
}

/** The path of a Python program that the requirements name. */
export const python = (program: string): string => join(VENV, 'bin', program)

/** The environment in which Python's programs find each other. */
export const PYTHON_ENV = { PATH: `${join(VENV, 'bin')}:${process.env.PATH ?? ''}` }

/** The command of a program from the packages of this folder's package.json. */
export const packaged = (program: string): readonly string[] => [
  process.execPath,
  '--bun',
  join(HERE, 'node_modules/.bin', program),
]

/** Installs the packages of both languages in fixed versions, unless they are there already. */
export async function installTools(): Promise<void> {
  mkdirSync(SCRATCH, { recursive: true })
  await runWell([process.execPath, 'install', '--frozen-lockfile', '--silent'], { cwd: HERE })
  // Generated clients resolve their packages here.
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
