import { describe, expect, test } from 'bun:test'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { SLACK_MS } from '../support/slack.ts'
import { compareP99, type Service, startService, until, untilAtRest } from './other-clients.ts'
import { countDescriptors, countOpen, PROCESS_TOOLS } from './process.ts'
import { formatRequest, openConnection, type RawConnection } from './raw-connection.ts'
import { ROUNDS_TIMEOUT_MS, testLong } from './rounds.ts'

const DESCRIPTORS_MAX = 200
const WAITING = 100
/** For "at once". */
const ACCEPT_LIMIT_MS = 1000

describe.skipIf(lacks(PROCESS_TOOLS))('more connections than there are descriptors', () => {
  const limit = ['prlimit', `--nofile=${DESCRIPTORS_MAX}:${DESCRIPTORS_MAX}`]

  /** Those that find no place wait in the backlog of the kernel. */
  const takeAll = async ({ server, token }: Service) => {
    const wires: RawConnection[] = []
    const statuses: number[] = []
    for (let count = 0; count < DESCRIPTORS_MAX + WAITING; count++) {
      const wire = await openConnection(server.port)
      wires.push(wire)
      void wire.ask(formatRequest('GET', '/healthz', token)).then(
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
      using wire = await openConnection(service.server.port)
      const { status } = await wire.ask(formatRequest('GET', '/plants?limit=20', service.token))

      expect(status).toBe(200)
      expect(performance.now() - startMs).toBeLessThan(ACCEPT_LIMIT_MS + SLACK_MS)
      expect(answeredBefore).toBeLessThan(DESCRIPTORS_MAX)
      await until(() => held.statuses.length > answeredBefore)
      expect(service.server.stdout()).not.toContain('"level":"error"')
    },
    ROUNDS_TIMEOUT_MS,
  )

  test('do not keep a server that nobody has shown a token to from writing', async () => {
    using folder = makeFolder()
    await using service = await startService(folder.path, 0, limit)
    const [other] = service.others
    // The kernel hands a connection over with its first bytes.
    await other?.ask('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n')
    // The thread that writes has a connection of its own.
    await until(() => countOpen(service.server.pid, `${service.database}-wal`) === 2)
    await untilAtRest(service.server.pid)
    using _held = await takeAll(service)

    const startMs = performance.now()
    expect(await service.create(other)).toBe(200)
    expect(performance.now() - startMs).toBeLessThan(ACCEPT_LIMIT_MS + SLACK_MS)
  })
})
