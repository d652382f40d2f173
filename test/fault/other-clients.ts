import { percentile } from '../bench/statistics.ts'
import { addPlants } from '../support/many-plants.ts'
import { countDescriptors, cpuMs } from '../support/process.ts'
import { type Connection, formatRequest, openConnection } from '../support/raw-connection.ts'
import { until } from '../support/until.ts'
import { rounds } from './rounds.ts'
import { makeTestDatabase, QUIET } from './test-database.ts'

/** The first id of the plants that these clients create. */
const FIRST_ID = 10_000_000
const OTHERS = 4
const REQUESTS = 60
const COMPARISONS = rounds(1, 15)

/** How much longer than alone the p99 of other clients may be. */
const P99_FACTOR = 3
const P99_SLACK_MS = 5

/** A server that has used no CPU time for so long is at rest. */
const REST_MS = 200

/** A server with plants, and connections of clients that are not slow. */
export async function serveOthers(plants: number, under: readonly string[] = []) {
  const db = await makeTestDatabase()
  const { database, token } = db
  addPlants(database, plants)
  const server = await db.serve([...QUIET, '--metrics-listen', '127.0.0.1:0'], { under })
  const others = await Promise.all(Array.from({ length: OTHERS }, () => openConnection(server.port)))
  let nextId = FIRST_ID

  const create = () => formatRequest('POST', '/plants', token, { id: nextId++, name: 'Fern' })
  const work = async (connection: Connection): Promise<number[]> => {
    const latenciesMs: number[] = []
    while (latenciesMs.length < REQUESTS) {
      const request = latenciesMs.length % 2 === 0 ? create() : formatRequest('GET', '/plants?limit=20', token)
      const startMs = performance.now()
      const { status, body } = await connection.request(request)
      latenciesMs.push(performance.now() - startMs)
      if (status !== 200) throw new Error(`answered with ${status} ${body}`)
    }
    return latenciesMs
  }
  return {
    ...db,
    server,
    others,
    /** Creates a plant. Resolves to the status. */
    create: async (connection: Connection | undefined) => (await connection?.request(create()))?.status,
    /** The p99 latency of creates and short lists of the clients that are not slow. */
    p99Ms: async () => percentile((await Promise.all(others.map(work))).flat(), 0.99),
  }
}

/** A server with other clients. */
export type OthersService = Awaited<ReturnType<typeof serveOthers>>

/** Compares the p99 of other clients beside slow clients and without them: the lowest of several measurements in turn. */
export async function compareP99(service: OthersService, attach: () => Promise<Disposable>) {
  const { pid } = service.server
  const alone: number[] = []
  const beside: number[] = []
  const descriptors = countDescriptors(pid)
  for (let count = 0; count < COMPARISONS; count++) {
    await until('the connections are closed', (see) => see(countDescriptors(pid)) <= descriptors)
    alone.push(await service.p99Ms())
    using _held = await attach()
    beside.push(await service.p99Ms())
  }
  const [aloneMs, besideMs] = [Math.min(...alone), Math.min(...beside)]
  console.log(`p99 of others: ${aloneMs.toFixed(2)} ms alone, ${besideMs.toFixed(2)} ms beside them`)
  return { besideMs, limitMs: P99_FACTOR * aloneMs + P99_SLACK_MS }
}

/** Waits until a server uses no CPU time. Short looks would not do: a busy machine gives a server little time. */
export async function untilAtRest(pid: number): Promise<void> {
  await until('the server is at rest', async () => {
    const beforeMs = cpuMs(pid)
    await Bun.sleep(REST_MS)
    return cpuMs(pid) === beforeMs
  })
}
