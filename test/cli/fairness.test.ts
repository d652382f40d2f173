import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { startExecutable } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { SLACK_MS } from '../support/slack.ts'
import { createTokenIn } from '../support/tokens.ts'

const PLANTS = 200_000
const READERS = 3
/** Their lists take several times as long as the server has for its end. */
const MANY_READERS = 24
const DRAIN_MS = 1000

function addPlants(database: string): void {
  using db = new Database(database)
  db.run(
    `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?1)
     insert into plants (user_id, id, name) select users.id, series.id, 'Monstera deliciosa' from users, series`,
    [PLANTS],
  )
}

async function serveMany(folder: string, ...flags: readonly string[]) {
  const database = join(folder, 'plantstore.db')
  const token = await createTokenIn(database)
  addPlants(database)
  const server = await startExecutable(['serve', '--listen', '127.0.0.1:0', '--database', database, ...flags])
  const list = () => fetch(`${server.url}/plants`, { headers: { authorization: `Bearer ${token}` } })
  return { server, list, [Symbol.asyncDispose]: server.kill }
}

describe('a server that sends long lists', () => {
  test('answers other requests in between', async () => {
    using folder = makeFolder()
    await using service = await serveMany(folder.path)
    const order: string[] = []

    const lists = Array.from({ length: READERS }, async () => {
      const plants = JSON.parse(await (await service.list()).text())
      order.push('list')
      return plants.length
    })
    const probes = [1, 2, 3, 4, 5].map(async () => {
      const { status } = await fetch(`${service.server.url}/healthz`)
      order.push('probe')
      return status
    })

    expect(await Promise.all(probes)).toEqual([200, 200, 200, 200, 200])
    expect(await Promise.all(lists)).toEqual(Array.from({ length: READERS }, () => PLANTS))
    expect(order.slice(0, 5)).toEqual(['probe', 'probe', 'probe', 'probe', 'probe'])
  })

  test('ends within --drain, and logs one line about the requests that it cut', async () => {
    using folder = makeFolder()
    await using service = await serveMany(folder.path, '--drain', `${DRAIN_MS / 1000}s`)
    const lists = Promise.allSettled(Array.from({ length: MANY_READERS }, async () => (await service.list()).text()))
    await service.list()
    const startMs = performance.now()

    service.server.signal('SIGTERM')
    const exitCode = await service.server.ended()

    expect(exitCode).toBe(0)
    expect(performance.now() - startMs).toBeLessThan(DRAIN_MS + SLACK_MS)
    expect((await lists).map(({ status }) => status)).toContain('rejected')
    expect(service.server.stdout()).toContain('requests were cut')
    expect(service.server.stdout()).not.toContain('"level":"error"')
  })
})
