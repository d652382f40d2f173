import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { runProgram } from '../support/program.ts'
import { program } from '../support/requirement.ts'

/** The project's folder, and the folder of these tests. */
export const PROJECT = resolve(import.meta.dir, '../..')
export const HERE = import.meta.dir
/** The folder for installed packages, generated code and reports. Git ignores it. */
export const SCRATCH = join(PROJECT, 'dist/conformance')

const VENV = join(SCRATCH, 'venv')
const REQUIREMENTS = join(HERE, 'requirements.txt')

interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
}

/** Runs a program, by default in the scratch folder. */
export const run = (command: readonly string[], { cwd = SCRATCH, env = {}, input = '' }: RunOptions = {}) =>
  runProgram(command, { cwd, env: { ...process.env, NO_COLOR: '1', ...env }, stdin: input })

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

export const GO = program('go')

/** Builds a Go program of a folder here, whose go.mod and go.sum fix all versions. Returns the path of the program. */
export async function buildGo(folder: string, program: string): Promise<string> {
  const output = join(SCRATCH, 'bin', folder)
  await runWell(['go', 'build', '-o', output, program], { cwd: join(HERE, folder) })
  return output
}

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
