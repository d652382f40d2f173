import { describe, expect, test } from 'bun:test'
import { formatRequest, openConnections } from '../support/paced-requests.ts'
import { countDescriptors, countOpen, PROCESS_TOOLS } from '../support/process.ts'
import { openConnection } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { SLACK_MS } from '../support/slack.ts'
import { until } from '../support/until.ts'
import { compareP99, type OthersService, serveOthers, untilAtRest } from './other-clients.ts'
import { ROUNDS_TIMEOUT_MS, testLong } from './rounds.ts'

const DESCRIPTORS_MAX = 200
const WAITING = 100
const LIMIT = ['prlimit', `--nofile=${DESCRIPTORS_MAX}:${DESCRIPTORS_MAX}`]
/** The meaning of "at once". */
const ACCEPT_LIMIT_MS = 1000

/** Opens more connections than the server has descriptors. The others wait in the backlog of the kernel. */
async function takeAll({ server, token }: OthersService) {
  const connections = await openConnections(server.port, DESCRIPTORS_MAX + WAITING)
  const statuses: number[] = []
  for (const connection of connections) {
    void connection.request(formatRequest('GET', '/healthz', token)).then(
      ({ status }) => statuses.push(status),
      () => {},
    )
  }
  await until('all descriptors are in use', () => countDescriptors(server.pid) === DESCRIPTORS_MAX)
  return {
    connections,
    statuses,
    [Symbol.dispose]() {
      for (const { cut } of connections) cut()
    },
  }
}

describe.skipIf(lacks(PROCESS_TOOLS))('more connections than descriptors', () => {
  testLong('do not slow down other clients', async () => {
    await using service = await serveOthers(1000, LIMIT)
    await service.p99Ms()
    const { besideMs, limitMs } = await compareP99(service, () => takeAll(service))

    expect(besideMs).toBeLessThan(limitMs)
  })

  test(
    'do not keep others from being answered; with free descriptors all who wait are answered at once',
    async () => {
      await using service = await serveOthers(1000, LIMIT)
      await service.p99Ms()
      using held = await takeAll(service)
      await service.p99Ms()
      const answeredBefore = held.statuses.length
      for (const { cut } of held.connections.slice(0, DESCRIPTORS_MAX)) cut()
      const startMs = performance.now()
      using connection = await openConnection(service.server.port)
      const { status } = await connection.request(formatRequest('GET', '/plants?limit=20', service.token))

      expect(status).toBe(200)
      expect(performance.now() - startMs).toBeLessThan(ACCEPT_LIMIT_MS + SLACK_MS)
      expect(answeredBefore).toBeLessThan(DESCRIPTORS_MAX)
      await until('waiting clients are answered', () => held.statuses.length > answeredBefore)
      expect(service.server.stdout()).not.toContain('"level":"error"')
    },
    ROUNDS_TIMEOUT_MS,
  )

  test('do not keep a server from its first write', async () => {
    await using service = await serveOthers(0, LIMIT)
    const [other] = service.others
    // The kernel hands a connection over with its first bytes.
    await other?.request('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')
    // The writing thread has a database connection of its own.
    await until('both have opened the WAL', () => countOpen(service.server.pid, `${service.database}-wal`) === 2)
    await untilAtRest(service.server.pid)
    using _held = await takeAll(service)

    const startMs = performance.now()
    expect(await service.create(other)).toBe(200)
    expect(performance.now() - startMs).toBeLessThan(ACCEPT_LIMIT_MS + SLACK_MS)
  })
})
