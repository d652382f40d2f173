import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { LOCK_MAX_WAIT_MS } from '../../src/engine/group-queue.ts'
import { STORE_DEADLINES } from '../../src/store/database.ts'
import { BUSY, expectCodes, REFUSED_BY_THEMSELVES, seen } from './support/answers.ts'
import { startService } from './support/service.ts'
import { IN_PROCESS } from './support/transports.ts'

const ORIGIN = 'https://app.example.org'

function lockStore(database: string, kind: 'immediate' | 'exclusive' = 'immediate') {
  const lock = new Database(database)
  lock.run(`begin ${kind}`)
  return {
    release: () => lock.run('rollback'),
    [Symbol.dispose]: () => lock.close(),
  }
}

describe.each(IN_PROCESS)('a database that another process has locked, $name', (transport) => {
  test('refuses every write with 50303 together, and stores none of them later', async () => {
    await using service = await startService(transport, { corsOrigin: [ORIGIN], storeDeadlines: STORE_DEADLINES })
    await service.create({ id: 1, name: 'Fern' })
    using lock = lockStore(service.database, 'exclusive')
    const startMs = performance.now()

    const answers = await Promise.all([
      service.create({ id: 2, name: 'Ivy' }, { headers: { origin: ORIGIN } }),
      service.delete(1),
      // Whether there is such a plant is not known.
      service.create({ id: 1, name: 'Ivy' }),
      service.delete(7),
      service.put(1, { name: 'Ivy' }),
    ])
    const durationMs = performance.now() - startMs
    const listed = await service.names()
    lock.release()

    expect(answers.map(seen)).toEqual(answers.map(() => BUSY))
    expect(durationMs).toBeLessThan(2 * LOCK_MAX_WAIT_MS)
    expect(listed).toEqual(['Fern'])
    // Pages of other origins may read this answer, too.
    expect(answers[0].headers.get('access-control-allow-origin')).toBe(ORIGIN)
    // A write that came later has been stored: one that was still waiting would have been as well.
    expect(await service.create({ id: 3, name: 'Moss' })).toMatchObject({ status: 200 })
    expect(await service.names()).toEqual(['Fern', 'Moss'])
    expect(await service.create({ id: 2, name: 'Ivy' })).toMatchObject({ status: 200 })
  })

  test('refuses with 50303 also what a quota or a precondition would refuse', async () => {
    await using service = await startService(transport, { quotaPlants: 1, storeDeadlines: STORE_DEADLINES })
    await service.create({ id: 1, name: 'Fern' })
    const putAll = () => [
      service.put(2, { name: 'Ivy' }),
      service.put(2, { name: 'Ivy' }, { headers: { 'if-match': '*' } }),
      service.put(1, { name: 'Ivy' }, { headers: { 'if-none-match': '*' } }),
      service.put(1, { name: 'Ivy' }, { headers: { 'if-match': '"x"' } }),
    ]
    using lock = lockStore(service.database)

    const busy = await Promise.all([
      service.create({ id: 2, name: 'Ivy' }),
      service.delete(1, { headers: { 'if-match': '"x"' } }),
      service.delete(1, { headers: { 'if-none-match': '*' } }),
      service.delete(7, { headers: { 'if-match': '*' } }),
      ...putAll(),
    ])
    lock.release()
    const refused = await Promise.all([
      service.create({ id: 2, name: 'Ivy' }),
      service.delete(1, { headers: { 'if-match': '"x"' } }),
      service.delete(7, { headers: { 'if-match': '*' } }),
      ...putAll(),
    ])

    expect(busy.map(seen)).toEqual(busy.map(() => BUSY))
    expect(refused.map(({ body }) => body.error)).toEqual([40302, 41201, 40402, 40302, 41201, 41201, 41201])
  })

  test('lets everything else be answered while a write waits, which is done as soon as the lock is gone', async () => {
    await using service = await startService(transport, { maxBody: 100, storeDeadlines: STORE_DEADLINES })
    await service.create({ id: 1, name: 'Fern' })
    using lock = lockStore(service.database)

    const creating = service.create({ id: 2, name: 'Ivy' })
    await expectCodes(service, [
      ['GET', '/healthz', {}, 200],
      ['GET', '/plants', {}, 200],
      ['GET', '/plants?limit=5', {}, 200],
      ...REFUSED_BY_THEMSELVES,
    ])
    lock.release()

    expect(await creating).toMatchObject({ status: 200 })
    expect(await service.names()).toEqual(['Fern', 'Ivy'])
  })
})
