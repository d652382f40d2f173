import { resolve } from 'node:path'
import { runProgram, startProgram } from './program.ts'
import { withoutProgress } from './progress.ts'
import type { Requirement } from './requirement.ts'
import { until } from './until.ts'

/** The compiled executable, if the tests run against it. Without it the same commands run from their source. */
export const EXECUTABLE = process.env.TEST_EXECUTABLE && resolve(process.env.TEST_EXECUTABLE)

/** For tests of what only the executable can be, or can have. */
export const COMPILED: Requirement = {
  missing: 'TEST_EXECUTABLE names no executable',
  isMet: () => EXECUTABLE !== undefined,
  isMetInCi: () => EXECUTABLE !== undefined,
}

/** The program that runs the commands, and its first arguments. */
export const COMMAND = EXECUTABLE ? [EXECUTABLE] : [process.execPath, resolve(import.meta.dir, '../../src/main.ts')]

/** A start takes well under a second, but longer on a busy machine. */
const START_TIMEOUT_MS = 60_000

interface SpawnOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly stdin?: string | Uint8Array<ArrayBuffer>
  /** A program with its arguments that runs the command, like strace. Signals and the exit code must pass through it. */
  readonly under?: readonly string[]
  /** Another program that runs the commands. */
  readonly command?: readonly string[]
}

/** The program under test has the `PATH` of the tests, and nothing else of their environment. */
const cleanEnvironment = (env: SpawnOptions['env']) => ({ PATH: process.env.PATH ?? '', HOME: '/nonexistent', ...env })

/** Runs a command to its end. Leaves out its progress. */
export async function runPlantstore(
  args: readonly string[],
  { env, cwd, stdin, under = [], command = COMMAND }: SpawnOptions = {},
) {
  const answer = await runProgram([...under, ...command, ...args], {
    env: cleanEnvironment(env),
    ...(cwd !== undefined && { cwd }),
    ...(stdin !== undefined && { stdin }),
  })
  return { ...answer, stderr: withoutProgress(answer.stderr) }
}

/** The token and the body of a request. An object is sent as JSON. */
interface SentOptions {
  readonly token?: string
  readonly body?: string | object
}

/** Starts a server on a database and a port of its own, unless the flags say otherwise. */
export const serve = (database: string, flags: readonly string[] = [], options: SpawnOptions = {}) =>
  startExecutable(['serve', '--listen', '127.0.0.1:0', '--database', database, ...flags], options)

/** Starts a server and waits until it says where it listens. Rejects with what it said if it ends before. */
export async function startExecutable(
  args: readonly string[],
  { env, cwd, under = [], command = COMMAND }: SpawnOptions = {},
) {
  const { child, stdout, stderr, ended } = startProgram([...under, ...command, ...args], {
    env: cleanEnvironment(env),
    ...(cwd !== undefined && { cwd }),
  })
  const exited = ended.then(({ exitCode }) => exitCode)
  const listens = () => {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it has ended')
    return /"address":"([^"]+)"/.exec(stdout())?.[1]
  }
  const address = await until('the server listens', listens, { limitMs: START_TIMEOUT_MS }).catch(async (cause) => {
    child.kill('SIGKILL')
    await exited
    throw new Error(`the server did not listen: exit code ${child.exitCode}\n${stdout()}${stderr()}`, { cause })
  })
  const unix = address.startsWith('unix:') ? address.slice('unix:'.length) : undefined
  const url = unix === undefined ? address : 'http://localhost'
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  return {
    pid: child.pid,
    /** The address that the server logged. */
    address,
    url,
    /** The port, unless the server listens at a unix socket. */
    port: Number(new URL(url).port),
    request: (method: string, path: string, { token, body }: SentOptions = {}) =>
      fetch(url + path, {
        method,
        headers: {
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        ...(unix !== undefined && { unix }),
      }),
    stdout,
    stderr,
    signal: (signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL' | 'SIGHUP') => child.kill(signal),
    /** Resolves to the exit code once `stdout` and `stderr` are complete. */
    ended: () => exited,
    /** Ends the server with SIGTERM. Resolves as `ended`. */
    end(): Promise<number> {
      child.kill('SIGTERM')
      return exited
    },
    kill,
    [Symbol.asyncDispose]: kill,
  }
}
