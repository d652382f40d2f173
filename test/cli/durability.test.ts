import { describe, expect, test } from 'bun:test'
import { runPlantstore, serve } from '../support/executable.ts'
import { startCluster } from '../support/postgres-cluster.ts'
import { OWN_POSTGRES } from '../support/postgres-system.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE, traceLooks, traceSyncs } from '../support/strace.ts'
import { refusalWith } from './support/answers.ts'
import { serveDatabase } from './support/database.ts'
import { createPlant, statusOf } from './support/service-client.ts'

const MANY = 100

describe.skipIf(lacks(STRACE))('what serve writes to disk before it answers', () => {
  test.each<[string, readonly string[]]>([
    ['by default', []],
    ['with --durability full', ['--durability', 'full']],
  ])('includes every create and delete, %s', async (_, flags) => {
    await using server = await serveWithPlant(flags)
    await using trace = await traceSyncs(server.pid)

    expect(await server.create(1)).toBe(200)
    expect(await server.delete(1)).toBe(204)

    expect(await trace.end()).toEqual(['sync', 'answer', 'sync', 'answer'])
  })

  test('is nothing with --durability normal', async () => {
    await using server = await serveWithPlant(['--durability', 'normal'])
    await using trace = await traceSyncs(server.pid)

    expect(await server.create(1)).toBe(200)
    expect(await server.delete(1)).toBe(204)

    expect(await trace.end()).toEqual(['answer', 'answer'])
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
    await using server = await serveWithPlant([])
    await using trace = await traceLooks(server.pid)

    for (let id = 1; id <= 5; id++) expect(await server.create(id)).toBe(200)

    const seen = [...(await trace.end())].filter((path) => path.startsWith(server.database))
    expect(seen.sort()).toEqual([server.database, `${server.database}-shm`])
  })
})

test.skipIf(lacks(OWN_POSTGRES))(
  'serve takes PostgreSQL with fsync = off with --durability storage alone',
  async () => {
    using cluster = await startCluster({ fsync: 'off' })
    const refused = await runPlantstore(['serve', '--listen', '127.0.0.1:0', '--database', cluster.url])
    await using server = await serve(cluster.url, ['--durability', 'storage'])

    expect(refused).toEqual(refusalWith(3, 'has fsync = off and may lose everything in a power failure'))
    expect(await statusOf(server, '/readyz')).toBe(200)
  },
)

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
