import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { COMMAND, serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { runProgram } from '../../support/program.ts'
import type { Random } from '../../support/random.ts'
import { until } from '../../support/until.ts'
import { type History, startHistory } from '../history.ts'
import { startLoad } from '../load.ts'
import { contentOf, EVERYTHING, emptyDisk } from './disk.ts'
import { type Event, type FileId, readEvents, strace } from './events.ts'

/** The name of the database in the recorded folder. */
export const DATABASE = 'plantstore.db'

/** Few enough for many syncs, and enough that writes share a sync. */
const CONNECTIONS = 8
/** The WAL begins anew after a complete checkpoint. The recording has writes before and after that. */
const WAL_RESTARTS = 1
const ANSWERS_AFTER_RESTART = 100
const ANSWERS_OF_SECOND_SERVER = 50
/** The end of a trace that is long enough for the line about the end of the process. */
const TRACE_END_BYTES = 4096

/** The bytes of a WAL's header that count its new beginnings (https://sqlite.org/walformat.html#the_wal_file_format). */
const WAL_SEQUENCE = [12, 16] as const

/** Plants of up to some pages, so that a checkpoint is due after some hundred writes. */
const largePlantOf = (id: number) => ({ id, name: `${id} ${'Monstera '.repeat((id * 7919) % 1500)}`, tag: `tag ${id}` })

/** The events in the folder of a database. */
export interface Recording {
  readonly events: readonly Event[]
  /** The last name of a file. */
  readonly nameOf: (file: FileId) => string | undefined
}

/** The events of a database under load, and the history of its client. */
export interface LoadRecording extends Recording {
  readonly history: History
}

/**
 * Records what processes do in an empty folder. `run` gets the folder and the path of the trace. Throws if a replay of the
 * recording does not result in the same files, to the byte.
 */
export async function recordFolder(run: (path: string, trace: string) => Promise<void>): Promise<Recording> {
  using folder = makeFolder()
  using traces = makeFolder()
  const path = realpathSync(folder.path)
  const trace = join(traces.path, 'trace')
  await run(path, trace)
  const recording = readEvents(readFileSync(trace, 'latin1'), path)
  const disk = emptyDisk()
  for (const event of recording.events) disk.take(event)
  const files = new Map(readdirSync(path).map((name) => [name, new Uint8Array(readFileSync(join(path, name)))]))
  const [replayed, real] = [contentOf(disk.lose(EVERYTHING)), contentOf(files)]
  if (replayed !== real) throw new Error(`a replay of the recording results in ${replayed} instead of ${real}`)
  return recording
}

/** Runs and records a command. */
export const recordCommand = (trace: string, ...args: readonly string[]) => recordProgram(trace, ...COMMAND, ...args)

/** Runs and records a program. */
export async function recordProgram(trace: string, ...command: readonly string[]): Promise<void> {
  const { stderr, exitCode } = await runProgram([...strace(trace, { detached: false }), ...command])
  if (exitCode !== 0) throw new Error(`${command.join(' ')} exits with ${exitCode}: ${stderr}`)
}

/**
 * Records a server that makes a database and writes until the WAL has begun anew, commands that make and delete a user, which
 * empties the WAL, and another server that writes.
 */
export async function recordLoad(flags: readonly string[], random: Random): Promise<LoadRecording> {
  const history = startHistory(1, largePlantOf)
  const recording = await recordFolder(async (path, trace) => {
    const database = join(path, DATABASE)
    const serveUntil = async (isEnough: (answers: number) => Promise<boolean>, known?: string) => {
      const more = known === undefined ? ['--first-token'] : []
      await using server = await serve(database, [...flags, ...more], { under: strace(trace, { detached: true }) })
      const firstToken = () => /plst_\w+/.exec(server.stderr())?.[0]
      await until('the server has made a token', () => known !== undefined || firstToken() !== undefined)
      const token = known ?? firstToken() ?? ''
      const load = startLoad({ url: server.url, token, history, random, connections: CONNECTIONS })
      await until('the load is enough', () => isEnough(load.answers()))
      await load.stop()
      const exitCode = await server.end()
      if (exitCode !== 0) throw new Error(`the server ends with ${exitCode}: ${server.stderr()}`)
      await until('strace has written all', () => isTraced(trace, server.pid))
      return token
    }

    let enough = Number.POSITIVE_INFINITY
    const token = await serveUntil(async (answers) => {
      if ((await countWalRestarts(database)) >= WAL_RESTARTS) enough = Math.min(enough, answers + ANSWERS_AFTER_RESTART)
      return answers >= enough
    })
    await recordCommand(trace, 'token', 'create', '--user', 'leaver', '--database', database)
    await recordCommand(trace, 'user', 'delete', 'leaver', '--yes', '--database', database)
    await serveUntil(async (answers) => answers >= ANSWERS_OF_SECOND_SERVER, token)
  })
  return { ...recording, history }
}

/** Whether strace has written all calls of a process. strace is no child of the tests that could be waited for. */
async function isTraced(trace: string, pid: number): Promise<boolean> {
  const file = Bun.file(trace)
  const end = await file.slice(Math.max(0, file.size - TRACE_END_BYTES)).text()
  return new RegExp(`^${pid} +\\+\\+\\+ exited`, 'm').test(end)
}

async function countWalRestarts(database: string): Promise<number> {
  const sequence = Buffer.from(
    await Bun.file(`${database}-wal`)
      .slice(...WAL_SEQUENCE)
      .arrayBuffer(),
  )
  return sequence.length < 4 ? 0 : sequence.readUInt32BE()
}
