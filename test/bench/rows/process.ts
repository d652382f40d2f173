import { readFileSync, writeFileSync } from 'node:fs'
import { LOAD_CORE, memoryBytes } from '../../support/process.ts'
import { makeDatabase } from '../databases.ts'
import { type Load, mixLoad, runWrk } from '../load/wrk.ts'
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

const LISTED_PLANTS = 1_000_000
/** How fast the slow client reads. The kernel's buffers take a small part of the answer, and the rest waits in the server. */
const SLOW_BYTES_PER_SECOND = 4_000_000

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

/** The resident memory of a server after a million mixed requests, in MB. */
export async function memoryAfterRequests(workspace: Workspace, server: Server, load: Load): Promise<number> {
  let requests = 0
  while (requests < REQUESTS) requests += (await runWrk(workspace, server, load, LOAD_SECONDS)).answered
  return memoryMb(server, 'VmRSS')
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
    const idle = [memoryMb(server, 'VmRSS')]

    const load = mixLoad(tokensFile)
    let requests = 0
    const used: number[] = []
    // The memory depends on the time since the last garbage collection, so read it several times.
    while (used.length < rounds) {
      say(`${requests} requests, ${used.length} of ${rounds} rounds`)
      requests += (await runWrk(workspace, server, load, LOAD_SECONDS)).answered
      if (requests >= REQUESTS) used.push(memoryMb(server, 'VmRSS'))
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

/** The memory of a list without a limit. */
const listMemory: Row = {
  name: 'list-memory',
  title: `growth of the memory by a list of ${LISTED_PLANTS} plants, to a fast and to a slow client`,
  async run({ workspace, rounds, say }) {
    const content = { users: 1, plantsPerUser: LISTED_PLANTS }
    const { path, token } = await makeDatabase(workspace.file('list-memory.db'), content)
    const measure = async (rate: string[]): Promise<number> => {
      const server = await startPlantstore(workspace, path)
      const get = (file: string, url: string) =>
        workspace.run(LOAD_CORE, [
          ...['curl', '--silent', '--show-error', '--fail', '--header', `Authorization: Bearer ${token}`],
          ...['--output', file, ...rate, url],
        ])
      // The first request loads code, which is not part of a list.
      await get('/dev/null', `${server.url}/plants?limit=10`)
      await Bun.sleep(IDLE_MS)
      // Sets the peak to the current size (https://man7.org/linux/man-pages/man5/proc_pid_clear_refs.5.html).
      writeFileSync(`/proc/${server.pid}/clear_refs`, '5')
      const idleMb = memoryMb(server, 'VmHWM')
      const file = workspace.file('list.json')
      await get(file, `${server.url}/plants`)
      const growthMb = memoryMb(server, 'VmHWM') - idleMb
      await server.stop()
      requireAllPlants(JSON.parse(readFileSync(file, 'utf8')))
      return growthMb
    }
    const growth = { unit: 'MB', goal: 64, floor: 80 } as const
    const [fast, slow]: [number[], number[]] = [[], []]
    for (let round = 1; round <= rounds; round++) {
      say(`round ${round} of ${rounds}`)
      fast.push(await measure([]))
      slow.push(await measure(['--limit-rate', String(SLOW_BYTES_PER_SECOND)]))
    }
    return {
      figures: [],
      claims: [
        { name: 'fast client', ...growth, rounds: fast },
        { name: 'slow client', ...growth, rounds: slow },
      ],
    }
  },
}

/** The rows of one process. */
export const PROCESS_ROWS: readonly Row[] = [start, memory, listMemory]

/** Throws if a plant is missing, doubled or out of order. */
function requireAllPlants(plants: readonly { readonly name: string }[]): void {
  const wrong = plants.findIndex(({ name }, index) => name !== `Monstera deliciosa ${index + 1}`)
  if (wrong !== -1 || plants.length !== LISTED_PLANTS)
    throw new Error(`${plants.length} plants were listed, and number ${wrong} is wrong`)
}

const memoryMb = ({ pid }: Server, field: 'VmRSS' | 'VmHWM') => memoryBytes(pid, field) / 1_000_000
