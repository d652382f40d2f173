import { describe, expect, test } from 'bun:test'
import { lacks } from '../support/requirement.ts'
import { STRACE, traceLooks, traceSyncs } from '../support/strace.ts'
import { serveDatabase } from './support/database.ts'
import { createPlant } from './support/service-client.ts'

const MANY = 100

describe.skipIf(lacks(STRACE))('what serve writes to disk before it answers', () => {
  test.each<[string, readonly string[], readonly ('sync' | 'answer')[]]>([
    ['every create and delete by default', [], ['sync', 'answer', 'sync', 'answer']],
    ['nothing with --durability normal', ['--durability', 'normal'], ['answer', 'answer']],
  ])('is %s', async (_, flags, events) => {
    await using server = await serveWithPlant(flags)
    await using trace = await traceSyncs(server.pid)

    expect(await server.create(1)).toBe(200)
    expect(await server.delete(1)).toBe(204)

    expect(await trace.end()).toEqual([...events])
  })

  test('is one fsync for many creates at once', async () => {
    await using server = await serveWithPlant([])
    await using trace = await traceSyncs(server.pid)

    const statuses = await Promise.all(Array.from({ length: MANY }, (_, id) => server.create(id + 1)))

    expect(statuses).toEqual(statuses.map(() => 200))
    const events = await trace.end()
    expect(events[0]).toBe('sync')
    expect(events.filter((event) => event === 'answer')).toHaveLength(MANY)
    expect(events.filter((event) => event === 'sync').length).toBeLessThan(MANY / 2)
  })

  // A file whose times were seen is dearer to sync after its next write.
  test.skipIf(process.platform !== 'linux')('does not include a look at the times of the WAL', async () => {
    // Another thread looks when it opens its connection.
    await using server = await serveWithPlant(['--threads', '1'])
    await using trace = await traceLooks(server.pid)

    for (let id = 1; id <= 5; id++) expect(await server.create(id)).toBe(200)

    const seen = [...(await trace.end())].filter((path) => path.startsWith(server.database))
    expect(seen.sort()).toEqual([server.database, `${server.database}-shm`])
  })
})

/** A server that has written once: its connections are open, and its WAL has begun. */
async function serveWithPlant(flags: readonly string[]) {
  const service = await serveDatabase(flags)
  const { server, token } = service
  const create = (id: number) => createPlant(server, token, id)
  expect(await create(0)).toBe(200)
  return {
    ...service,
    pid: server.pid,
    create,
    delete: async (id: number) => (await server.request('DELETE', `/plants/${id}`, { token })).status,
  }
}
