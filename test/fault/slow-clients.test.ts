import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { percentile } from '../bench/statistics.ts'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'
import { type HoldName, hoard } from './hoard.ts'
import { countDescriptors, cpuMs, PROCESSES_ARE_SKIPPED, PROCESSES_NOTE, peakMib, residentMib } from './process.ts'
import { IS_LONG, ROUNDS_TIMEOUT_MS, rounds, testLong } from './scale.ts'
import { openWire, requestOf, type Wire } from './wire.ts'

/** Of the list that is never read: far more than the buffers of a connection hold. */
const PLANTS = rounds(200_000, 1_000_000)
/** Of the clients that are not slow. */
const FIRST_ID = 10_000_000
const OTHERS = 4
const REQUESTS = 60
const COMPARISONS = rounds(3, 15)

/** By how much the p99 of others may differ on a machine that does other things, too. */
const P99_FACTOR = 5
const P99_SLACK_MS = 30
/** Lists that are not read would take several times as much if they were kept in memory. */
const GROWTH_MAX_MIB = 160

/** What the service gives a request to arrive and an answer to be taken (src/http/server.ts). */
const IDLE_TIMEOUT_MS = 30_000
/** The runtime looks every four seconds; the rest is for the machine's own delays. */
const CUT_SLACK_MS = 4000 + 6000

const DESCRIPTORS_MAX = 200
const WAITING = 100
/** For "at once", on a machine that does other things, too. */
const ACCEPT_LIMIT_MS = 3000

/** A server that has had no time for so long wants none. */
const REST_MS = 200

const CROWD = {
  'half-sent heads': 100,
  'heads of a byte a second': 100,
  'bodies of a byte a second': 100,
  'long lists that are never read': 20,
  'idle connections': rounds(500, 5000),
} as const satisfies Record<HoldName, number>

/** All of them at once; in the long form also each way by itself. */
const CROWDS: readonly (readonly [name: string, counts: Partial<Record<HoldName, number>>])[] = [
  ['slow clients of every kind', CROWD],
  ...(IS_LONG ? Object.entries(CROWD) : []).map(([name, count]) => [name, { [name]: count }] as const),
]

/** A server, with some connections of clients that are not slow. */
async function startService(folder: string, plants: number, under: readonly string[] = []) {
  const database = join(folder, 'plantstore.db')
  const token = await createTokenIn(database)
  addPlants(database, plants)
  const server = await serve(database, ['--access-log', 'off'], { under })
  const others = await Promise.all(Array.from({ length: OTHERS }, () => openWire(server.port)))
  let nextId = FIRST_ID

  const create = () => requestOf('POST', '/plants', token, { id: nextId++, name: 'Fern' })
  const work = async (wire: Wire): Promise<number[]> => {
    const latenciesMs: number[] = []
    while (latenciesMs.length < REQUESTS) {
      const request = latenciesMs.length % 2 === 0 ? create() : requestOf('GET', '/plants?limit=20', token)
      const startMs = performance.now()
      const { status, body } = await wire.ask(request)
      latenciesMs.push(performance.now() - startMs)
      if (status !== 200) throw new Error(`answered with ${status} ${body}`)
    }
    return latenciesMs
  }
  return {
    token,
    server,
    others,
    /** Sends a create. Resolves to the status. */
    create: async (wire: Wire | undefined) => (await wire?.ask(create()))?.status,
    /** How long creates and lists take that are not slow themselves. */
    p99Ms: async () => percentile((await Promise.all(others.map(work))).flat(), 0.99),
    async [Symbol.asyncDispose]() {
      for (const { cut } of others) cut()
      await server.kill()
    },
  }
}

type Service = Awaited<ReturnType<typeof startService>>

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
async function compareP99(service: Service, attach: () => Promise<Disposable>) {
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

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await Bun.sleep(5)
}

/** Waits until a server has so many descriptors and has come to rest: all have been sent what their buffers hold. */
async function untilTaken(pid: number, descriptors: number): Promise<void> {
  await until(() => countDescriptors(pid) >= descriptors)
  // A look every now and then would not do: on a busy machine a server gets little time also when it wants more.
  for (let beforeMs = -1; cpuMs(pid) > beforeMs; await Bun.sleep(REST_MS)) beforeMs = cpuMs(pid)
}

describe.skipIf(PROCESSES_ARE_SKIPPED).each(CROWDS)(`%s${PROCESSES_NOTE}`, (_, counts) => {
  const count = Object.values(counts).reduce((sum, each) => sum + each, 0)

  test(
    'leave the p99 of others as it is, and memory bounded',
    async () => {
      using folder = makeFolder()
      await using service = await startService(folder.path, PLANTS)
      const { pid, port } = service.server
      await service.p99Ms()
      const residentBeforeMib = residentMib(pid)
      const descriptors = countDescriptors(pid)
      const { besideMs, limitMs } = await compareP99(service, async () => {
        const held = await hoard(port, service.token, counts)
        await untilTaken(pid, descriptors + count)
        return held
      })

      console.log(`memory: ${residentBeforeMib.toFixed(0)} MiB before, ${peakMib(pid).toFixed(0)} MiB at most`)
      expect(besideMs).toBeLessThan(limitMs)
      expect(peakMib(pid) - residentBeforeMib).toBeLessThan(GROWTH_MAX_MIB)
    },
    ROUNDS_TIMEOUT_MS,
  )

  testLong('are cut in time, and leave nothing behind', async () => {
    using folder = makeFolder()
    await using service = await startService(folder.path, PLANTS)
    const { pid, port, stdout } = service.server
    await service.p99Ms()
    const descriptors = countDescriptors(pid)
    using _held = await hoard(port, service.token, counts)
    const startMs = performance.now()
    await untilTaken(pid, descriptors + count)
    await until(() => countDescriptors(pid) <= descriptors)

    console.log(`all were cut after ${((performance.now() - startMs) / 1000).toFixed(1)} s`)
    expect(performance.now() - startMs).toBeLessThan(IDLE_TIMEOUT_MS + CUT_SLACK_MS)
    using wire = await openWire(port)
    expect(await service.create(wire)).toBe(200)
    expect(stdout()).not.toContain('"level":"error"')
  })
})

describe.skipIf(PROCESSES_ARE_SKIPPED)(`more connections than there are descriptors${PROCESSES_NOTE}`, () => {
  const limit = ['prlimit', `--nofile=${DESCRIPTORS_MAX}:${DESCRIPTORS_MAX}`]

  /** Those that find no place wait in the backlog of the kernel. */
  const takeAll = async ({ server, token }: Service) => {
    const wires: Wire[] = []
    const statuses: number[] = []
    for (let count = 0; count < DESCRIPTORS_MAX + WAITING; count++) {
      const wire = await openWire(server.port)
      wires.push(wire)
      void wire.ask(requestOf('GET', '/healthz', token)).then(
        ({ status }) => statuses.push(status),
        () => {},
      )
    }
    await until(() => countDescriptors(server.pid) === DESCRIPTORS_MAX)
    return {
      wires,
      statuses,
      [Symbol.dispose]() {
        for (const { cut } of wires) cut()
      },
    }
  }

  testLong('leave the p99 of others as it is', async () => {
    using folder = makeFolder()
    await using service = await startService(folder.path, 1000, limit)
    await service.p99Ms()
    const { besideMs, limitMs } = await compareP99(service, () => takeAll(service))

    expect(besideMs).toBeLessThan(limitMs)
  })

  test(
    'let others be answered; once there are descriptors again, all who wait are answered at once',
    async () => {
      using folder = makeFolder()
      await using service = await startService(folder.path, 1000, limit)
      await service.p99Ms()
      using held = await takeAll(service)
      await service.p99Ms()
      const answeredBefore = held.statuses.length
      for (const { cut } of held.wires.slice(0, DESCRIPTORS_MAX)) cut()
      const startMs = performance.now()
      using wire = await openWire(service.server.port)
      const { status } = await wire.ask(requestOf('GET', '/plants?limit=20', service.token))

      expect(status).toBe(200)
      expect(performance.now() - startMs).toBeLessThan(ACCEPT_LIMIT_MS)
      expect(answeredBefore).toBeLessThan(DESCRIPTORS_MAX)
      await until(() => held.statuses.length > answeredBefore)
      expect(service.server.stdout()).not.toContain('"level":"error"')
    },
    ROUNDS_TIMEOUT_MS,
  )

  // TODO: the thread that writes starts with the first write and needs descriptors for that; the process ends with 1.
  test.todo('do not end a server that has not written anything yet', async () => {
    using folder = makeFolder()
    await using service = await startService(folder.path, 0, limit)
    using _held = await takeAll(service)

    expect(await service.create(service.others[0])).toBe(200)
  })
})
