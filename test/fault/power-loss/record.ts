import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore, serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { runProgram } from '../../support/program.ts'
import type { Random } from '../../support/random.ts'
import { type History, startHistory } from '../history.ts'
import { startLoad } from '../load.ts'
import { EVERYTHING, emptyDisk, type Files } from './disk.ts'
import { type Event, type FileId, readEvents } from './events.ts'
import { strace } from './trace.ts'

/** The database's name in the folder that is recorded. */
export const DATABASE = 'plantstore.db'

/** Few enough that there are many syncs, enough that writes share one. */
const CONNECTIONS = 8
/** The WAL begins anew after a checkpoint that was complete: what comes before and what comes after is recorded. */
const WAL_RESTARTS = 1
const ANSWERS_AFTER_RESTART = 100
const ANSWERS_OF_SECOND_SERVER = 50
const POLL_MS = 10
/** So much of a trace's end has the line that says how the process ended. */
const TRACE_END_BYTES = 4096

/** Where a WAL's header says how often it has begun anew (https://sqlite.org/walformat.html#the_wal_file_format). */
const WAL_SEQUENCE = [12, 16] as const

/** Plants of up to some pages, so that the WAL grows to its checkpoint by some hundred writes. */
const largePlantOf = (id: number) => ({ id, name: `${id} ${'Monstera '.repeat((id * 7919) % 1500)}`, tag: `tag ${id}` })

/** What happened in the folder of a database. */
export interface Recording {
  readonly events: readonly Event[]
  /** The name with which a file was made. */
  readonly nameOf: (file: FileId) => string | undefined
}

/** What happened to a database under load, and the client's record of the same time. */
export interface RecordingWithHistory extends Recording {
  readonly history: History
}

/**
 * Records what processes do in a folder that is empty at first. `run` gets the folder and what runs a command so that
 * it is recorded. Throws if the record does not explain the files that are there at last, to the byte.
 */
export async function recordFolder(run: (path: string, trace: string) => Promise<void>): Promise<Recording> {
  using folder = makeFolder()
  using traces = makeFolder()
  const path = realpathSync(folder.path)
  const trace = join(traces.path, 'trace')
  await run(path, trace)
  const recording = readEvents(readFileSync(trace, 'latin1'), path)
  requireSame(replay(recording.events), readFiles(path))
  return recording
}

/** Runs a command on a database to its end, and records it. */
export async function recordCommand(trace: string, database: string, ...args: readonly string[]): Promise<void> {
  const under = strace(trace, { detached: false })
  const { exitCode, stderr } = await runPlantstore([...args, '--database', database], { under })
  if (exitCode !== 0) throw new Error(`${args.join(' ')} exits with ${exitCode}: ${stderr}`)
}

/** Runs a program to its end, and records it. */
export async function recordProgram(trace: string, ...command: readonly string[]): Promise<void> {
  const { stderr, exitCode } = await runProgram([...strace(trace, { detached: false }), ...command])
  if (exitCode !== 0) throw new Error(`${command.join(' ')} exits with ${exitCode}: ${stderr}`)
}

/**
 * Records a life of a database: a server makes it, writes until the WAL has begun anew, and ends; commands make a user
 * and delete it, which empties the WAL; another server goes on.
 */
export async function recordLife(flags: readonly string[], random: Random): Promise<RecordingWithHistory> {
  const history = startHistory(1, largePlantOf)
  const recording = await recordFolder(async (path, trace) => {
    const database = join(path, DATABASE)
    const serveUntil = async (isEnough: (answers: number) => Promise<boolean>, known?: string) => {
      const more = known === undefined ? ['--first-token'] : []
      await using server = await serve(database, [...flags, ...more], { under: strace(trace, { detached: true }) })
      const token = known ?? (await firstTokenOf(server))
      const load = startLoad({ url: server.url, token, history, random, connections: CONNECTIONS })
      while (!(await isEnough(load.answers()))) await pauseOf(server)
      await load.stop()
      const exitCode = await server.end()
      if (exitCode !== 0) throw new Error(`the server ends with ${exitCode}: ${server.stderr()}`)
      while (!(await isTraced(trace, server.pid))) await Bun.sleep(POLL_MS)
      return token
    }

    let enough = Number.POSITIVE_INFINITY
    const token = await serveUntil(async (answers) => {
      if ((await countWalRestarts(database)) >= WAL_RESTARTS) enough = Math.min(enough, answers + ANSWERS_AFTER_RESTART)
      return answers >= enough
    })
    await recordCommand(trace, database, 'token', 'create', '--user', 'leaver')
    await recordCommand(trace, database, 'user', 'delete', 'leaver', '--yes')
    await serveUntil(async (answers) => answers >= ANSWERS_OF_SECOND_SERVER, token)
  })
  return { ...recording, history }
}

type Server = Awaited<ReturnType<typeof serve>>

/** A moment in which a server goes on. Throws if it has ended. */
async function pauseOf({ pid }: Server): Promise<void> {
  process.kill(pid, 0)
  await Bun.sleep(POLL_MS)
}

async function firstTokenOf(server: Server): Promise<string> {
  for (;;) {
    const [token] = /plst_\w+/.exec(server.stderr()) ?? []
    if (token !== undefined) return token
    await pauseOf(server)
  }
}

/** Whether strace, which was not our child, has written all of a process. */
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

function replay(events: readonly Event[]): Files {
  const disk = emptyDisk()
  for (const event of events) disk.take(event)
  return disk.lose(EVERYTHING)
}

const readFiles = (path: string): Files =>
  new Map(readdirSync(path).map((name) => [name, new Uint8Array(readFileSync(join(path, name)))]))

function requireSame(replayed: Files, real: Files): void {
  for (const name of new Set([...replayed.keys(), ...real.keys()])) {
    const [ours, theirs] = [replayed.get(name), real.get(name)]
    if (ours === undefined || theirs === undefined || Buffer.compare(ours, theirs) !== 0) {
      throw new Error(`the record does not explain ${name}: ${ours?.length} bytes instead of ${theirs?.length}`)
    }
  }
}
