import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { PAGE_ROWS } from '../../src/domain/store.ts'
import { runSql } from '../store/sqlite/files.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

const ISO_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describe.concurrent('token list', () => {
  test.each([PAGE_ROWS, PAGE_ROWS + 1])('prints %d tokens as one table and as one array', async (count) => {
    using made = makeDatabase()
    await createTokenIn(made.database)
    runSql(
      made.database,
      `with recursive series (id) as (select 2 union all select id + 1 from series where id < ${count})
       insert into tokens (user_id, hash, scope, created_at_ms) select 1, randomblob(32), 'write', 0 from series`,
    )
    const [table, json] = await Promise.all([made.run('token', 'list'), made.run('token', 'list', '--json')])
    const ids = Array.from({ length: count }, (_, index) => index + 1)

    const tokens = JSON.parse(json.stdout)
    expect(tokens.map(({ id }: { readonly id: number }) => id)).toEqual(ids)
    expect(json.stdout).toBe(`${JSON.stringify(tokens, null, 2)}\n`)
    const lines = table.stdout.trimEnd().split('\n')
    expect(lines.map((line) => line.split(' ', 1)[0])).toEqual(['id', ...ids.map(String)])
    // The columns of a page are at least as wide as those of the page before.
    expect(new Set(lines.slice(1, PAGE_ROWS).map((line) => line.indexOf('write'))).size).toBe(1)
  })
})

describe.concurrent('a server writes the last use of a token', () => {
  test('while it runs', async () => {
    await using service = await serveDatabase()
    const { server, token, tokens } = service
    await createTokenIn(service.database)
    const beforeMs = Date.now()
    await server.request('GET', '/plants', { token })
    const afterMs = Date.now()
    await until('the use is stored', async () => (await tokens())[0].lastUsed !== null)
    const [used, unused] = await tokens()

    expect(Date.parse(used.lastUsed)).toBeWithin(beforeMs, afterMs + 1)
    expect(unused.lastUsed).toBeNull()
  })

  test('at its end, and answers the request while nothing can be written', async () => {
    await using service = await serveDatabase()
    const { server, token } = service
    using other = new Database(service.database)
    other.run('begin immediate')
    const { status } = await server.request('GET', '/plants', { token })
    const isLocked = other.inTransaction
    other.run('rollback')
    await server.end()

    expect({ status, isLocked }).toEqual({ status: 200, isLocked: true })
    expect(await service.tokens()).toMatchObject([{ lastUsed: ISO_TIME }])
  })
})
