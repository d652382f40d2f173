import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { STORE_DEADLINES } from '../../src/store/database.ts'
import { startService } from './support/service.ts'
import { IN_PROCESS, type Transport } from './support/transports.ts'

/** A service whose checks of the store are counted, with a clock that a test sets. */
async function startWithClock(
  transport: Transport,
  lifecycle = { draining: new AbortController(), readyAtMs: new Float64Array(1) },
) {
  const clock = { nowMs: 5000 }
  const checks = { count: 0 }
  const service = await startService(transport, {
    storeDeadlines: STORE_DEADLINES,
    app: { ...lifecycle, nowMs: () => clock.nowMs },
    overrideStore: ({ checkReady }) => ({
      checkReady() {
        checks.count += 1
        return checkReady()
      },
    }),
  })
  const ask = async (path: string, method = 'GET') => {
    const { status, headers } = await service.request(method, path, { token: null })
    return { status, connection: headers.get('connection'), retryAfter: headers.get('retry-after') }
  }
  return { service, clock, lifecycle, checks, ask }
}

const READY = { status: 200, connection: null, retryAfter: null }
const NOT_READY = { status: 503, connection: null, retryAfter: '1' }

describe.each(IN_PROCESS)('/readyz, $name', (transport) => {
  test('checks the store at most once a second, however many ask', async () => {
    const { service, clock, checks, ask } = await startWithClock(transport)
    await using _service = service
    const many = Array.from({ length: 50 }, (_, i) => ask('/readyz', i % 2 === 0 ? 'GET' : 'HEAD'))
    expect(await Promise.all(many)).toEqual(many.map(() => READY))
    expect(checks.count).toBe(1)

    clock.nowMs += 999
    await ask('/readyz')
    expect(checks.count).toBe(1)

    clock.nowMs += 1
    await ask('/readyz')
    await ask('/readyz')
    expect(checks.count).toBe(2)

    // The clock was set back by an hour.
    clock.nowMs -= 3_600_000
    await ask('/readyz')
    expect(checks.count).toBe(3)
  })

  test('is checked for all threads by one of them', async () => {
    const first = await startWithClock(transport)
    await using _first = first.service
    const second = await startWithClock(transport, first.lifecycle)
    await using _second = second.service

    expect([await first.ask('/readyz'), await second.ask('/readyz')]).toEqual([READY, READY])
    expect([first.checks.count, second.checks.count]).toEqual([1, 0])
  })

  test('shares a failure for as long as a success, and succeeds again after that', async () => {
    const { service, clock, checks, ask } = await startWithClock(transport)
    await using _service = service
    using lock = new Database(service.database)
    lock.run('begin immediate')
    expect([await ask('/readyz'), await ask('/readyz')]).toEqual([NOT_READY, NOT_READY])
    expect((await service.request('GET', '/readyz')).body).toMatchObject({ error: 50303 })
    expect(checks.count).toBe(1)

    lock.run('rollback')
    clock.nowMs += 999
    expect(await ask('/readyz')).toEqual(NOT_READY)
    clock.nowMs += 1
    expect(await ask('/readyz')).toEqual(READY)
    expect(checks.count).toBe(2)
  })

  test('says while the server ends that it shuts down, without asking the store, and /healthz stays 200', async () => {
    const { service, lifecycle, checks, ask } = await startWithClock(transport)
    await using _service = service
    lifecycle.draining.abort()

    expect(await ask('/readyz')).toEqual({ ...NOT_READY, connection: 'close' })
    expect(await ask('/readyz', 'HEAD')).toEqual({ ...NOT_READY, connection: 'close' })
    expect((await service.request('GET', '/readyz')).body).toEqual({
      error: 50303,
      message: 'The server is shutting down: ask another one, or again when it has restarted.',
    })
    // Neither asks the store.
    expect(await ask('/healthz')).toEqual({ ...READY, connection: 'close' })
    expect(checks.count).toBe(0)
  })
})
