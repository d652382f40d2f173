import { join } from 'node:path'
import { ALL_CORES, LOAD_CORE } from '../../support/process.ts'
import type { Server } from '../servers.ts'
import type { Workspace } from '../workspace.ts'

/** A closed loop of wrk: each connection sends its next request after the answer to the last one. */
export interface Load {
  readonly connections: number
  /** Whether the load has a thread on each core, beside the server. By default it has one thread on `LOAD_CORE`. */
  readonly isOnAllCores?: boolean
  /** The script of wrk, in this folder. */
  readonly script: 'list.lua' | 'pages.lua' | 'create.lua'
  /** Called before each run of wrk. Every run gets its own ids. */
  readonly scriptArguments: () => readonly (string | number)[]
}

/** The result of a load. */
export interface Rate {
  readonly perSecond: number
  /** All answered requests, including the warm-up. */
  readonly answered: number
  /** The share of its core that the server used. Well below 1, something other than the server was the limit. */
  readonly serverBusy: number
  /** The same of the database server, which shares the core of the load. */
  readonly databaseBusy: number
  /** The CPU time of the server's threads for each request. */
  readonly cpuUsPerRequest: number
}

const WARM_UP_SECONDS = 1
/** The connections of most loads. */
export const CONNECTIONS = 64
/** The number of ids for a run, and the first run whose ids are above the stored ones. */
const IDS_PER_RUN = 10_000_000
const FIRST_FREE_RUN = 10

/** Lists by the users of a file of tokens, in random order. */
export const listLoad = (tokensFile: string, path = '/plants?limit=20'): Load => ({
  connections: CONNECTIONS,
  script: 'list.lua',
  scriptArguments: () => [tokensFile, path],
})

/** Lists of 20 by the users of a file of tokens, after random ids of a range. No URL is the same as another. */
export function pagesLoad(tokensFile: string, firstId: number, count: number): Load {
  const firstRequest = freshIds()
  return {
    connections: CONNECTIONS,
    script: 'pages.lua',
    scriptArguments: () => [tokensFile, firstId, count, firstRequest()],
  }
}

/** Creates by the users of a file of tokens, in random order. */
export function createLoad(tokensFile: string, connections = CONNECTIONS, every = 1, firstId = freshIds()): Load {
  return { connections, script: 'create.lua', scriptArguments: () => [tokensFile, every, firstId()] }
}

/** Nine lists of 20 and a create in turns, by the users of a file of tokens, in random order. */
export const mixLoad = (tokensFile: string): Load => createLoad(tokensFile, CONNECTIONS, 10)

/** The first id of each run. The ids are above the stored ones and differ between runs. */
export function freshIds() {
  let run = FIRST_FREE_RUN
  return () => run++ * IDS_PER_RUN
}

/** Measures the rate of a server under a load, after a second of warm-up. Rejects if an answer is not a success. */
export async function measureRate(
  workspace: Workspace,
  server: Server,
  load: Load,
  seconds: number,
  databaseCpuMs = () => 0,
): Promise<Rate> {
  const warmUp = await runWrk(workspace, server, load, WARM_UP_SECONDS)
  const [startMs, startCpuMs, startDatabaseMs] = [performance.now(), server.cpuMs(), databaseCpuMs()]
  const measured = await runWrk(workspace, server, load, seconds)
  const [cpuMs, databaseMs] = [server.cpuMs() - startCpuMs, databaseCpuMs() - startDatabaseMs]
  return {
    perSecond: measured.perSecond,
    answered: warmUp.answered + measured.answered,
    serverBusy: cpuMs / (performance.now() - startMs),
    databaseBusy: databaseMs / (performance.now() - startMs),
    cpuUsPerRequest: (cpuMs * 1000) / measured.answered,
  }
}

/** Runs wrk once. Rejects if an answer is not a success. */
export async function runWrk(
  workspace: Workspace,
  server: Server,
  { connections, isOnAllCores = false, script, scriptArguments }: Load,
  seconds: number,
) {
  const flags = [
    '--threads',
    isOnAllCores ? '2' : '1',
    '--connections',
    String(connections),
    '--duration',
    `${seconds}s`,
  ]
  const path = join(import.meta.dir, script)
  const text = await workspace.run(isOnAllCores ? ALL_CORES : LOAD_CORE, [
    ...['wrk', ...flags, '--script', path, server.url, '--'],
    ...scriptArguments().map(String),
  ])
  const perSecond = Number(/^Requests\/sec: +([\d.]+)$/m.exec(text)?.[1])
  const answered = Number(/^ +(\d+) requests in /m.exec(text)?.[1])
  const isClean = !text.includes('Socket errors') && !text.includes('Non-2xx')
  if (!isClean || !(perSecond > 0) || !(answered > 0))
    throw new Error(`the load on ${server.name} met errors:\n${text}`)
  return { perSecond, answered }
}
