import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { createApp } from '../../src/http/app.ts'
import { openStore } from '../../src/store/open.ts'
import { appOptions } from '../support/app.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { startService, TRANSPORTS } from './support/service.ts'

const OK = { status: 200, body: { status: 'ok' } }
const SHUTTING_DOWN = {
  error: 50303,
  message: 'The server is shutting down: ask another one, or again when it has restarted.',
}

describe.each(TRANSPORTS)('the probes, $name', (transport) => {
  test('answer without a token, and with one that is not valid', async () => {
    await using service = await startService(transport)

    for (const path of ['/healthz', '/readyz', '/readyz?x=1']) {
      for (const token of [null, 'nobody', service.token]) {
        const { status, body, headers } = await service.request('GET', path, { token })
        expect({ path, status, body, type: headers.get('content-type') }).toEqual({
          path,
          ...OK,
          type: 'application/json',
        })

        const head = await service.request('HEAD', path, { token })
        expect({ path, status: head.status, type: head.headers.get('content-type') }).toEqual({
          path,
          status: 200,
          type: 'application/json',
        })
      }
    }
  })

  test('change nothing that is stored', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    await service.request('GET', '/readyz')

    expect(await service.names()).toEqual(['Fern'])
    expect(await service.store.checkIntegrity()).toEqual([])
  })
})

/** The app on a real store whose looks are counted, with a clock that a test turns. */
async function startWithClock() {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const store = await openStore(database, () => {})
  const lifecycle = { isDraining: false }
  const clock = { nowMs: 5000 }
  const looks = { count: 0 }
  const app = createApp(
    appOptions({
      store: {
        ...store,
        checkReady() {
          looks.count += 1
          return store.checkReady()
        },
      },
      lifecycle,
      monotonicMs: () => clock.nowMs,
    }),
  )
  return {
    database,
    clock,
    looks,
    lifecycle,
    async ask(path: string, method = 'GET') {
      const { status, headers } = await app(new Request(`http://localhost${path}`, { method }))
      return { status, connection: headers.get('connection'), retryAfter: headers.get('retry-after') }
    },
    body: async (path: string) => (await app(new Request(`http://localhost${path}`))).json(),
    async [Symbol.asyncDispose]() {
      await store.close()
      folder[Symbol.dispose]()
    },
  }
}

const READY = { status: 200, connection: null, retryAfter: null }
const NOT_READY = { status: 503, connection: null, retryAfter: '1' }

describe('/readyz', () => {
  test('looks at the store at most once a second, however many ask', async () => {
    await using service = await startWithClock()
    const many = Array.from({ length: 50 }, (_, i) => service.ask('/readyz', i % 2 === 0 ? 'GET' : 'HEAD'))
    expect(await Promise.all(many)).toEqual(many.map(() => READY))
    expect(service.looks.count).toBe(1)

    service.clock.nowMs += 999
    await service.ask('/readyz')
    expect(service.looks.count).toBe(1)

    service.clock.nowMs += 1
    await service.ask('/readyz')
    await service.ask('/readyz')
    expect(service.looks.count).toBe(2)
  })

  test('looks at nothing before somebody asks, nor for /healthz', async () => {
    await using service = await startWithClock()

    await service.ask('/healthz')

    expect(service.looks.count).toBe(0)
  })

  test('shares a failure for as long as a success, and is well again after', async () => {
    await using service = await startWithClock()
    using lock = new Database(service.database)
    lock.run('begin immediate')
    expect([await service.ask('/readyz'), await service.ask('/readyz')]).toEqual([NOT_READY, NOT_READY])
    expect(await service.body('/readyz')).toMatchObject({ error: 50303 })
    expect(service.looks.count).toBe(1)

    lock.run('rollback')
    service.clock.nowMs += 999
    expect(await service.ask('/readyz')).toEqual(NOT_READY)
    service.clock.nowMs += 1
    expect(await service.ask('/readyz')).toEqual(READY)
    expect(service.looks.count).toBe(2)
  })

  test('says that the server is about to end, without asking the store, while /healthz stays well', async () => {
    await using service = await startWithClock()
    service.lifecycle.isDraining = true

    expect(await service.ask('/readyz')).toEqual({ ...NOT_READY, connection: 'close' })
    expect(await service.ask('/readyz', 'HEAD')).toEqual({ ...NOT_READY, connection: 'close' })
    expect(await service.body('/readyz')).toEqual(SHUTTING_DOWN)
    expect(await service.ask('/healthz')).toEqual({ ...READY, connection: 'close' })
    expect(service.looks.count).toBe(0)
  })

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'turns 503 with the first %s, while the listener is still open',
    async (signal) => {
      using folder = makeFolder()
      const database = join(folder.path, 'plantstore.db')
      await runPlantstore(['token', 'create', '--user', 'me', '--database', database])
      await using server = await serve(database, ['--drain', '30s', '--drain-wait', '20s'])
      const readyz = async () => {
        const response = await fetch(`${server.url}/readyz`)
        return {
          status: response.status,
          connection: response.headers.get('connection'),
          body: await response.json(),
        }
      }
      expect(await readyz()).toMatchObject(OK)

      server.signal(signal)
      let answer = await readyz()
      while (answer.status === 200) answer = await readyz()

      expect(answer).toEqual({ status: 503, connection: 'close', body: SHUTTING_DOWN })
      expect((await fetch(`${server.url}/healthz`)).status).toBe(200)
      expect((await fetch(`${server.url}/plants`)).status).toBe(401)
    },
  )
})
