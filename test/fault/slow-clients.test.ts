import { describe, expect, test } from 'bun:test'
import { SLOW_READER_S } from '../../src/http/connection.ts'
import { IS_LONG } from '../support/long.ts'
import { metricsUrlOf, scrape } from '../support/metrics.ts'
import { countDescriptors, countOpen, descriptorsMax, PROCESS_TOOLS, peakMib, residentMib } from '../support/process.ts'
import { type Connection, formatRequest, openConnection } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { isBusy, SLACK_MS } from '../support/slack.ts'
import { until } from '../support/until.ts'
import { readSlowly } from './clients.ts'
import { compareP99, type OthersService, serveOthers, untilAtRest } from './other-clients.ts'
import { rounds, testLong } from './rounds.ts'
import { THREADS } from './test-database.ts'

/** The list that nobody reads is far longer than the buffers of a connection. */
const PLANTS = rounds(200_000, 1_000_000)

/** Unread lists would take several times as much memory if the server kept them. */
const GROWTH_MAX_MIB = 160

/** The default of `--idle-timeout`. */
const IDLE_TIMEOUT_MS = 75_000
/** The runtime looks every four seconds. */
const CUT_SLACK_MS = 4000 + SLACK_MS
const DESCRIPTORS_MAX = 200
/** The meaning of "at once". */
const ACCEPT_LIMIT_MS = 1000
/** How much of a body is still missing: more than arrives during a test at a byte per second. */
const BODY_LEFT = 2000

/** A kind of client that holds its connection. */
interface SlowClient {
  readonly name: string
  readonly count: number
  /** Sends the first bytes. */
  readonly begin: (connection: Connection, token: string) => unknown
  /** Whether the client then sends a byte per second. */
  readonly isDripping?: boolean
  /** By default the idle timeout. */
  readonly cutAfterMs?: number
}

const sendHalfHead = (connection: Connection) => connection.send('POST /plants HTTP/1.1\r\nHost: a\r\nX-Half: ')

const CROWD: readonly SlowClient[] = [
  { name: 'half-sent heads', count: 100, begin: sendHalfHead },
  { name: 'heads at a byte per second', count: 100, begin: sendHalfHead, isDripping: true },
  {
    name: 'bodies at a byte per second',
    count: 100,
    begin: (connection, token) =>
      connection.send(
        formatRequest('POST', '/plants', token, { id: -1, name: 'x'.repeat(BODY_LEFT) }).slice(0, -BODY_LEFT),
      ),
    isDripping: true,
  },
  {
    name: 'long lists that nobody reads',
    count: 20,
    begin(connection, token) {
      connection.pause()
      return connection.send(formatRequest('GET', '/plants', token))
    },
    cutAfterMs: SLOW_READER_S * 1000,
  },
  {
    name: 'idle connections',
    count: rounds(500, 5000),
    begin: (connection, token) => connection.request(formatRequest('GET', '/healthz', token)),
  },
]

const LIMIT = ['prlimit', `--nofile=${DESCRIPTORS_MAX}:${DESCRIPTORS_MAX}`]
/** More connections than a limited server has descriptors. The others wait in the backlog of the kernel. */
const waiting = (onAnswer: (status: number) => void = () => {}): SlowClient => ({
  name: 'more connections than descriptors',
  count: DESCRIPTORS_MAX + 100,
  begin: (connection, token) =>
    void connection.request(formatRequest('GET', '/healthz', token)).then(
      ({ status }) => onAnswer(status),
      () => {},
    ),
})

/** All kinds at once. The long form also has each kind by itself. */
const CROWDS: readonly (readonly [name: string, kinds: readonly SlowClient[], under: readonly string[]])[] = [
  ['slow clients of every kind', CROWD, []],
  ...(IS_LONG ? CROWD : []).map((kind) => [kind.name, [kind], []] as const),
  ...(IS_LONG ? [['more connections than descriptors', [waiting()], LIMIT] as const] : []),
]

describe.skipIf(lacks(PROCESS_TOOLS)).each(CROWDS)('%s', (_, kinds, under) => {
  test('do not slow down other clients, take bounded memory, and are cut in time', async () => {
    await using service = await serveOthers(PLANTS, under)
    const expectBoundedMemory = await watchMemory(service)
    const { besideMs, limitMs } = await compareP99(service, async () => {
      const held = await hold(service, kinds)
      // Now the buffers are full of lists. With slow bytes a busy machine would never come to rest.
      await untilAtRest(service.server.pid)
      held.startSlowBytes()
      return held
    })

    // The short form runs beside other tests. There it shows that others are answered at all.
    if (IS_LONG) expect(besideMs).toBeLessThan(limitMs)
    if (IS_LONG && under !== LIMIT) await expectCuts(service, kinds)
    expectBoundedMemory()
  })
})

/** Expects that slow clients are cut in time, and leave nothing behind. */
async function expectCuts(service: OthersService, kinds: readonly SlowClient[]): Promise<void> {
  const { pid, port, stdout } = service.server
  await untilAtRest(pid)
  const descriptors = countDescriptors(pid)
  const limitMs = Math.max(...kinds.map(({ cutAfterMs }) => cutAfterMs ?? IDLE_TIMEOUT_MS))
  const startMs = performance.now()
  using held = await hold(service, kinds)
  held.startSlowBytes()
  await until('all are cut', (see) => see(countDescriptors(pid)) <= descriptors, { limitMs: 2 * limitMs })

  console.log(`all were cut after ${((performance.now() - startMs) / 1000).toFixed(1)} s`)
  expect(performance.now() - startMs).toBeLessThan(limitMs + CUT_SLACK_MS)
  using connection = await openConnection(port)
  expect(await service.create(connection)).toBe(200)
  expect(stdout()).not.toContain('"level":"error"')
}

describe.skipIf(lacks(PROCESS_TOOLS))('more connections than descriptors', () => {
  test('do not keep others from being answered; with free descriptors all who wait are answered at once', async () => {
    await using service = await serveOthers(1000, LIMIT)
    await service.p99Ms()
    const statuses: number[] = []
    using held = await hold(service, [waiting((status) => statuses.push(status))])
    await service.p99Ms()
    const answeredBefore = statuses.length
    for (const { cut } of held.connections.slice(0, DESCRIPTORS_MAX)) cut()
    const startMs = performance.now()
    using connection = await openConnection(service.server.port)
    const listed = await connection.request(formatRequest('GET', '/plants?limit=20', service.token))

    expect(listed).toMatchObject({ status: 200 })
    expect(performance.now() - startMs).toBeLessThan(ACCEPT_LIMIT_MS + SLACK_MS)
    expect(answeredBefore).toBeLessThan(DESCRIPTORS_MAX)
    await until('waiting clients are answered', () => statuses.length > answeredBefore)
    expect(service.server.stdout()).not.toContain('"level":"error"')
  })

  test('keep neither a server from its first write nor scrapers from its metrics', async () => {
    await using service = await serveOthers(0, LIMIT)
    const [other] = service.others
    // The kernel hands a connection over with its first bytes.
    await other?.request('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')
    // Each thread has a database connection of its own, also the one that writes.
    const opened = () => countOpen(service.server.pid, `${service.database}-wal`)
    await until('all have opened the WAL', (see) => see(opened()) === THREADS + 1)
    await untilAtRest(service.server.pid)
    // This connection stays open.
    await fetch(`${metricsUrlOf(service.server)}/healthz`)
    using _held = await hold(service, [waiting()])

    const startMs = performance.now()
    expect(await service.create(other)).toBe(200)
    expect(performance.now() - startMs).toBeLessThan(ACCEPT_LIMIT_MS + SLACK_MS)
    expect(await scrape(service.server)).toMatchObject({ plantstore_write_queue_length: 0 })
  })
})

/**
 * Opens connections of slow clients. Resolves once the server has accepted all of them: a busy machine cuts the first heads,
 * after 12 s, before that.
 */
async function hold({ server, token }: OthersService, kinds: readonly SlowClient[]) {
  const descriptors = countDescriptors(server.pid)
  const connections: Connection[] = []
  const dripping: Connection[] = []
  for (const { count, begin, isDripping } of kinds) {
    for (let index = 0; index < count; index++) {
      const connection = await openConnection(server.port)
      connections.push(connection)
      if (isDripping) dripping.push(connection)
      await begin(connection, token)
    }
  }
  const countEnded = () => connections.filter(({ isClosed }) => isClosed()).length
  const all = Math.min(descriptors + connections.length, descriptorsMax(server.pid))
  await until('all are accepted', (see) => see(countDescriptors(server.pid) + countEnded()) >= all)
  return {
    connections,
    /** Sends a byte per second on each slow connection until it ends. */
    startSlowBytes() {
      for (const connection of dripping) {
        const timer = setInterval(() => connection.send('x'), 1000)
        void connection.ended.then(() => clearInterval(timer))
      }
    },
    [Symbol.dispose]() {
      for (const { cut } of connections) cut()
    },
  }
}

/** Warms the server up. Resolves to a function that expects bounded growth of memory since then. */
async function watchMemory({ server: { pid }, p99Ms }: OthersService, growthMaxMib = GROWTH_MAX_MIB) {
  await p99Ms()
  const beforeMib = residentMib(pid)
  return () => {
    console.log(`memory: ${beforeMib.toFixed(0)} MiB before, ${peakMib(pid).toFixed(0)} MiB at most`)
    expect(peakMib(pid) - beforeMib).toBeLessThan(growthMaxMib)
  }
}

const PART = Buffer.alloc(1024 ** 2, 'x')
const PARTS = 100
/** What the runtime takes while two such bodies arrive at once, however long they are. */
const PARTS_MAX_MIB = 100
/** The ways to send a body of that many parts. */
const FORMS = [
  { line: `Content-Length: ${PARTS * PART.length}`, part: PART, last: '' },
  {
    line: 'Transfer-Encoding: chunked',
    part: Buffer.concat([Buffer.from(`${PART.length.toString(16)}\r\n`), PART, Buffer.from('\r\n')]),
    last: '0\r\n\r\n',
  },
]

describe.skipIf(lacks(PROCESS_TOOLS))('bodies of 100 MiB', () => {
  test('are refused at level memory, and their connections go on, or end behind chunks', async () => {
    await using service = await serveOthers(1000)
    const expectBoundedMemory = await watchMemory(service, PARTS_MAX_MIB)
    const refuse = async (token: string, { line, part, last }: (typeof FORMS)[number]) => {
      using connection = await openConnection(service.server.port)
      const lines = `Content-Type: application/json\r\n${line}\r\n`
      await connection.send(formatRequest('POST', '/plants', token, undefined, lines))
      for (let parts = 0; parts < PARTS; parts++) await connection.send(part)
      const { status, headers } = await connection.request(last)
      const isLast = headers.get('connection') === 'close'
      if (isLast && last === '' && isBusy()) return false
      return [status, isLast ? await connection.ended : await service.create(connection)]
    }
    const refuseAll = (token: string) =>
      Promise.all(FORMS.map((form) => until('the client pauses for less than 2 s', () => refuse(token, form))))

    const unknown = await refuseAll('unknown')
    const known = await refuseAll(service.token)

    const answers = [401, 413].map((status) => [
      [status, 200],
      [status, undefined],
    ])
    expect([unknown, known]).toEqual(answers)
    expectBoundedMemory()
  })
})

/** Far longer than the buffers of a connection. */
const LIST_PLANTS = 400_000
/** At this pace the kernel's send buffer drains for minutes. */
const BYTES_PER_SECOND = 16 * 1024

/** The two ways to send an answer: in chunks, and with a `Content-Length`. */
describe.skipIf(lacks(PROCESS_TOOLS)).concurrent.each([
  ['without a limit', '', LIST_PLANTS],
  ['with a limit', '?limit=200000', 200_000],
])('a list %s', (_, query, count) => {
  testLong('arrives whole at a client that reads 16 KB/s, with the default idle timeout', async () => {
    await using service = await serveOthers(LIST_PLANTS)

    const startMs = performance.now()
    const list = await readSlowly(service.server.port, service.token, BYTES_PER_SECOND, query)
    const plants = await list.plants()

    console.log(`${plants} plants after ${((performance.now() - startMs) / 1000).toFixed(0)} s`)
    expect(plants).toBe(count)
  })
})
