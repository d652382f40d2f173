import { join } from 'node:path'
import type { Server } from '../servers.ts'
import { LOAD_CORE, type Workspace } from '../workspace.ts'

/** What wrk sends, in a closed loop: each connection sends its next request when the last was answered. */
export interface Load {
  readonly connections: number
  /** Of wrk, in this folder. */
  readonly script: 'list.lua' | 'pages.lua' | 'create.lua' | 'delete.lua' | 'mix.lua'
  /** Asked for before each run of wrk and told how long it takes, so that no two runs send the same ids. */
  readonly scriptArguments: (seconds: number) => readonly (string | number)[]
}

/** What came of a load. */
export interface Rate {
  readonly perSecond: number
  /** All that were answered, those of the warm-up included. */
  readonly answered: number
  /** The share of the time in which the server had its core: well below 1 it is not the server that is measured. */
  readonly serverBusy: number
  /** Processor time of the server's threads for each request. */
  readonly cpuUsPerRequest: number
}

const WARM_UP_SECONDS = 1
/** Of every load, but where one client is what is measured. */
export const CONNECTIONS = 64
/** Ids that a run may use. */
export const IDS_PER_RUN = 10_000_000
/** How many plants a second can be deleted, at most: so many are there to be. More would be answered with errors. */
export const DELETES_PER_SECOND_MAX = 100_000

/** Lists by the users of a file of tokens, in random order. */
export const listLoad = (tokensFile: string, path = '/plants?limit=20'): Load => ({
  connections: CONNECTIONS,
  script: 'list.lua',
  scriptArguments: () => [tokensFile, path],
})

/** Lists of 20 by the users of a file of tokens, after random ids of a range, none of which is asked for twice. */
export function pagesLoad(tokensFile: string, firstId: number, count: number): Load {
  const firstRequest = freshIds()
  return {
    connections: CONNECTIONS,
    script: 'pages.lua',
    scriptArguments: () => [tokensFile, firstId, count, firstRequest()],
  }
}

/** Creates by the users of a file of tokens, in random order. */
export function createLoad(tokensFile: string, connections = CONNECTIONS): Load {
  const firstId = freshIds()
  return { connections, script: 'create.lua', scriptArguments: () => [tokensFile, firstId()] }
}

/** Deletes by the first user of a file of tokens, from plant 1 on. */
export function deleteLoad(tokensFile: string): Load {
  const firstId = ascendingIds(1)
  return {
    connections: CONNECTIONS,
    script: 'delete.lua',
    scriptArguments: (seconds) => [tokensFile, firstId(seconds * DELETES_PER_SECOND_MAX)],
  }
}

/** Nine lists and a create, again and again, by the users of a file of tokens, in random order. */
export function mixLoad(tokensFile: string): Load {
  const firstId = freshIds()
  return { connections: CONNECTIONS, script: 'mix.lua', scriptArguments: () => [tokensFile, firstId()] }
}

/** The first id of each run: above those that are stored, and every run has its own, from the `firstRun`th on. */
export function freshIds(firstRun = 10) {
  const next = ascendingIds(firstRun * IDS_PER_RUN)
  return () => next(IDS_PER_RUN)
}

function ascendingIds(firstId: number) {
  let next = firstId
  return (count: number) => {
    next += count
    return next - count
  }
}

/** How long it takes to measure a rate, with the warm-up, when the rate is measured for so many seconds. */
export const withWarmUpSeconds = (seconds: number): number => WARM_UP_SECONDS + seconds

/** How often a server answers under a load, after a second of warm-up. Rejects if anything but successes come. */
export async function measureRate(workspace: Workspace, server: Server, load: Load, seconds: number): Promise<Rate> {
  const warmUp = await runWrk(workspace, server, load, WARM_UP_SECONDS)
  const startMs = performance.now()
  const startCpuMs = server.cpuMs()
  const measured = await runWrk(workspace, server, load, seconds)
  const cpuMs = server.cpuMs() - startCpuMs
  return {
    perSecond: measured.perSecond,
    answered: warmUp.answered + measured.answered,
    serverBusy: cpuMs / (performance.now() - startMs),
    cpuUsPerRequest: (cpuMs * 1000) / measured.answered,
  }
}

/** Runs wrk once. Rejects if anything but successes come. */
export async function runWrk(
  workspace: Workspace,
  server: Server,
  { connections, script, scriptArguments }: Load,
  seconds: number,
) {
  const flags = ['--threads', '1', '--connections', String(connections), '--duration', `${seconds}s`]
  const path = join(import.meta.dir, script)
  const text = await workspace.run(LOAD_CORE, [
    ...['wrk', ...flags, '--script', path, server.url, '--'],
    ...scriptArguments(seconds).map(String),
  ])
  return readWrk(text, server.name)
}

/** Reads what wrk prints. Throws if it tells of an error. */
export function readWrk(text: string, name: string) {
  const perSecond = Number(/^Requests\/sec: +([\d.]+)$/m.exec(text)?.[1])
  const answered = Number(/^ +(\d+) requests in /m.exec(text)?.[1])
  const isClean = !text.includes('Socket errors') && !text.includes('Non-2xx')
  if (!isClean || !(perSecond > 0) || !(answered > 0)) throw new Error(`the load on ${name} met errors:\n${text}`)
  return { perSecond, answered }
}
