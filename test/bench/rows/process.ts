import { memoryBytes } from '../../support/process.ts'
import { makeDatabase } from '../databases.ts'
import { mixLoad, runWrk } from '../load/wrk.ts'
import { type Server, spawnPlantstore, startPlantstore, untilOk } from '../servers.ts'
import type { Workspace } from '../workspace.ts'
import type { Row } from './row.ts'

const STARTS_MIN = 15
const STARTS_PER_ROUND = 3
const POLL_MS = 0.5

const REQUESTS = 1_000_000
const IDLE_MS = 2000
/** The length of a load. The row repeats the load until the service has answered enough requests, and then once before each round. */
const LOAD_SECONDS = 5

/** The time from the spawn to the first list. */
const start: Row = {
  name: 'start',
  title: 'start to the first 200, on 1 000 000 plants',
  async run({ workspace, rounds, say }) {
    const { path, token } = await makeDatabase(workspace.file('start.db'), { users: 10_000, plantsPerUser: 100 })
    const count = Math.max(STARTS_MIN, rounds * STARTS_PER_ROUND)
    const startsMs: number[] = []
    for (let number = 1; number <= count; number++) {
      say(`start ${number} of ${count}`)
      startsMs.push(await timeStart(workspace, path, token))
    }
    return {
      figures: [],
      claims: [{ name: 'start to the first 200', unit: 'ms', goal: 40, floor: 100, rounds: startsMs }],
    }
  },
}

async function timeStart(workspace: Workspace, database: string, token: string): Promise<number> {
  const startMs = performance.now()
  const server = spawnPlantstore(workspace, database)
  await untilOk(server, '/plants?limit=20', POLL_MS, token)
  const durationMs = performance.now() - startMs
  await server.stop()
  return durationMs
}

/** The memory of the service. */
const memory: Row = {
  name: 'memory',
  title: 'resident memory: idle, and after 1 000 000 mixed requests of 10 000 users',
  async run({ workspace, rounds, say }) {
    const { path, tokensFile } = await makeDatabase(workspace.file('memory.db'), { users: 10_000, plantsPerUser: 100 })
    const server = await startPlantstore(workspace, path)
    say('idle')
    await Bun.sleep(IDLE_MS)
    const idle = [memoryMb(server)]

    const load = mixLoad(tokensFile)
    let requests = 0
    const used: number[] = []
    // The memory depends on the time since the last garbage collection, so read it several times.
    while (used.length < rounds) {
      say(`${requests} requests, ${used.length} of ${rounds} rounds`)
      requests += (await runWrk(workspace, server, load, LOAD_SECONDS)).answered
      if (requests >= REQUESTS) used.push(memoryMb(server))
    }
    return {
      figures: [],
      claims: [
        { name: 'idle', unit: 'MB', goal: 60, floor: 80, rounds: idle },
        { name: 'after 1 000 000 requests', unit: 'MB', goal: 100, floor: 140, rounds: used },
      ],
      notes: [`${requests} requests were answered`],
    }
  },
}

/** The rows of one process. */
export const PROCESS_ROWS: readonly Row[] = [start, memory]

const memoryMb = ({ pid }: Server) => memoryBytes(pid, 'VmRSS') / 1_000_000
