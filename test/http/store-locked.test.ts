import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { BUSY_TIMEOUT_MS } from '../../src/store/sqlite/connection.ts'
import { type Answer, SOCKET_TRANSPORTS, SQLITE_TRANSPORTS, startService } from './support/service.ts'

const BUSY = {
  status: 503,
  retryAfter: '1',
  body: {
    error: 50303,
    message: 'The server is too busy or shutting down, nothing was and nothing will be stored: try again.',
  },
}

const seen = ({ status, headers, body }: Answer) => ({ status, retryAfter: headers.get('retry-after'), body })

describe.each(SQLITE_TRANSPORTS)('a database that another process has locked, $name', (transport) => {
  test('refuses a create with 50303, lists go on, and the plant is not stored later either', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    using lock = new Database(service.database)
    lock.run('begin exclusive')

    expect(seen(await service.create({ id: 2, name: 'Ivy' }))).toEqual(BUSY)
    expect(await service.names()).toEqual(['Fern'])

    lock.run('rollback')
    // A write that came later has been stored: one that was still waiting would have been as well.
    expect((await service.create({ id: 3, name: 'Moss' })).status).toBe(200)
    expect(await service.names()).toEqual(['Fern', 'Moss'])
    expect((await service.create({ id: 2, name: 'Ivy' })).status).toBe(200)
  })
})

describe.each(SOCKET_TRANSPORTS)('a database that another process has locked, $name', (transport) => {
  test('refuses a delete with 50303, and the plant stays', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    using lock = new Database(service.database)
    lock.run('begin immediate')

    expect(seen(await service.delete(1))).toEqual(BUSY)

    lock.run('rollback')
    expect((await service.create({ id: 3, name: 'Moss' })).status).toBe(200)
    expect(await service.names()).toEqual(['Fern', 'Moss'])
  })

  test('keeps nobody else waiting: many writes are refused together, and others are answered before', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    using lock = new Database(service.database)
    lock.run('begin immediate')
    const order: string[] = []
    const note = (what: string) => (answer: Answer) => {
      order.push(what)
      return answer.status
    }
    const startMs = performance.now()

    const creates = Array.from({ length: 8 }, (_, id) =>
      service.create({ id: id + 2, name: 'Ivy' }).then(note('create')),
    )
    const others = ['/healthz', '/plants', '/plants?limit=5'].map((path) =>
      service.request('GET', path).then(note('other')),
    )

    expect(await Promise.all(others)).toEqual([200, 200, 200])
    expect(await Promise.all(creates)).toEqual(creates.map(() => 503))
    expect(performance.now() - startMs).toBeLessThan(2 * BUSY_TIMEOUT_MS)
    expect(order.slice(0, others.length)).toEqual(others.map(() => 'other'))
  })

  test('takes a write as soon as the lock is gone', async () => {
    await using service = await startService(transport)
    using lock = new Database(service.database)
    lock.run('begin immediate')

    const creating = service.create({ id: 1, name: 'Fern' })
    expect(await service.names()).toEqual([])
    lock.run('rollback')

    expect((await creating).status).toBe(200)
    expect(await service.names()).toEqual(['Fern'])
  })
})
