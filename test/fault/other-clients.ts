import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { percentile } from '../bench/statistics.ts'
import { serve } from '../support/executable.ts'
import { createTokenIn } from '../support/tokens.ts'
import { countDescriptors, cpuMs } from './process.ts'
import { formatRequest, openConnection, type RawConnection } from './raw-connection.ts'
import { rounds } from './rounds.ts'

/** Of the clients that are not slow. */
const FIRST_ID = 10_000_000
const OTHERS = 4
const REQUESTS = 60
const COMPARISONS = rounds(1, 15)

/** By how much the p99 of others may differ. */
const P99_FACTOR = 3
const P99_SLACK_MS = 5

/** A server that has had no time for so long wants none. */
const REST_MS = 200

/** A server, with some connections of clients that are not slow. */
export async function startService(folder: string, plants: number, under: readonly string[] = []) {
  const database = join(folder, 'plantstore.db')
  const token = await createTokenIn(database)
  addPlants(database, plants)
  const server = await serve(database, ['--access-log', 'off'], { under })
  const others = await Promise.all(Array.from({ length: OTHERS }, () => openConnection(server.port)))
  let nextId = FIRST_ID

  const create = () => formatRequest('POST', '/plants', token, { id: nextId++, name: 'Fern' })
  const work = async (wire: RawConnection): Promise<number[]> => {
    const latenciesMs: number[] = []
    while (latenciesMs.length < REQUESTS) {
      const request = latenciesMs.length % 2 === 0 ? create() : formatRequest('GET', '/plants?limit=20', token)
      const startMs = performance.now()
      const { status, body } = await wire.ask(request)
      latenciesMs.push(performance.now() - startMs)
      if (status !== 200) throw new Error(`answered with ${status} ${body}`)
    }
    return latenciesMs
  }
  return {
    database,
    token,
    server,
    others,
    /** Sends a create. Resolves to the status. */
    create: async (wire: RawConnection | undefined) => (await wire?.ask(create()))?.status,
    /** How long creates and lists take that are not slow themselves. */
    p99Ms: async () => percentile((await Promise.all(others.map(work))).flat(), 0.99),
    async [Symbol.asyncDispose]() {
      for (const { cut } of others) cut()
      await server.kill()
    },
  }
}

/** That server. */
export type Service = Awaited<ReturnType<typeof startService>>

function addPlants(database: string, count: number): void {
  using db = new Database(database)
  db.run(
    `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?1)
     insert into plants (user_id, id, name, tag)
     select users.id, series.id, 'Monstera deliciosa ' || series.id, 'evergreen' from users, series`,
    [count],
  )
  db.run('pragma wal_checkpoint(truncate)')
}

/**
 * Compares how long others wait beside slow clients and without them. Both are measured in turn, and the lowest of each
 * counts: whatever else the machine does comes and goes.
 */
export async function compareP99(service: Service, attach: () => Promise<Disposable>) {
  const { pid } = service.server
  const alone: number[] = []
  const beside: number[] = []
  const descriptors = countDescriptors(pid)
  for (let count = 0; count < COMPARISONS; count++) {
    await until(() => countDescriptors(pid) <= descriptors)
    alone.push(await service.p99Ms())
    using _held = await attach()
    beside.push(await service.p99Ms())
  }
  const [aloneMs, besideMs] = [Math.min(...alone), Math.min(...beside)]
  console.log(`p99 of others: ${aloneMs.toFixed(2)} ms alone, ${besideMs.toFixed(2)} ms beside them`)
  return { besideMs, limitMs: P99_FACTOR * aloneMs + P99_SLACK_MS }
}

/** Waits until something is so. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await Bun.sleep(5)
}

/** Waits until a server has nothing to do any more. */
export async function untilAtRest(pid: number): Promise<void> {
  // A look every now and then would not do: on a busy machine a server gets little time also when it wants more.
  for (let beforeMs = -1; cpuMs(pid) > beforeMs; await Bun.sleep(REST_MS)) beforeMs = cpuMs(pid)
}
