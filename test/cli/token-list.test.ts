import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { PAGE_ROWS } from '../../src/domain/store.ts'
import { runSql } from '../store/sqlite/files.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { cellsOf, refusal, refusalWith } from './support/answers.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

/** A database with a token of each of these users, in their order. */
async function makeTokens(...users: readonly string[]) {
  const made = makeDatabase()
  for (const user of users) await createTokenIn(made.database, user)
  const idsOf = async (...args: readonly string[]) =>
    (await made.json('token', 'list', ...args)).map(({ id }: { readonly id: number }) => id)
  return { ...made, idsOf }
}

const ISO_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describe.concurrent('token list', () => {
  test('prints everything but the text of the tokens, as a table and with --json', async () => {
    using made = makeDatabase()
    const create = (...args: readonly string[]) => made.run('token', 'create', '--user', ...args)
    const created = [
      await create('me'),
      await create('you', '--scope', 'read', '--expires', '90d', '--label', 'laptop'),
    ]
    await made.run('token', 'revoke', '1')
    const table = await made.run('token', 'list')
    const json = await made.run('token', 'list', '--json')

    const unused = { created: ISO_TIME, lastUsed: null, replacedBy: null }
    expect(JSON.parse(json.stdout)).toEqual([
      { id: 1, user: 'me', scope: 'write', label: null, ...unused, expires: null, state: 'revoked' },
      { id: 2, user: 'you', scope: 'read', label: 'laptop', ...unused, expires: ISO_TIME, state: 'active' },
    ])
    const [, laptop] = JSON.parse(json.stdout)
    expect(Date.parse(laptop.expires) - Date.parse(laptop.created)).toBe(90 * 86_400_000)
    expect(Object.keys(laptop).join(' ')).toBe('id user scope label created expires lastUsed state replacedBy')
    expect(cellsOf(table.stdout)).toEqual([
      ['id', 'user', 'scope', 'label', 'created', 'expires', 'last used', 'state', 'replaced by'],
      ['1', 'me', 'write', '-', ISO_TIME, 'never', 'never', 'revoked', '-'],
      ['2', 'you', 'read', 'laptop', ISO_TIME, ISO_TIME, 'never', 'active', '-'],
    ])
    expect([table, json]).toMatchObject(Array(2).fill({ stderr: '', exitCode: 0 }))
    for (const { stdout } of created) expect(table.stdout + json.stdout).not.toContain(stdout.trim().slice(5))
  })

  test('prints control characters in a label as JSON escapes, in the table and with --json', async () => {
    using made = await makeTokens('me')
    runSql(made.database, "update tokens set label = 'a' || char(27, 91, 50, 75, 10, 0x9b, 0x2028, 0x202e) || 'b'")
    const [table, json] = await Promise.all([made.run('token', 'list'), made.run('token', 'list', '--json')])

    const escaped = String.raw`a\u001b[2K\u000a\u009b\u2028\u202eb`
    expect(table.stdout.split('\n')[1]).toContain(`  ${escaped}  `)
    expect(json.stdout).toContain(`"label": "${escaped.replace('u000a', 'n')}"`)
  })

  test('and user list print a time that no date can show in milliseconds, and all other rows', async () => {
    using made = await makeTokens('me', 'you')
    runSql(
      made.database,
      'update tokens set created_at_ms = 8640000000000000, expires_at_ms = 8640000000000001 where id = 1',
      'update users set created_at_ms = -8640000000000001, blocked_at_ms = 9007199254740991 where id = 1',
    )
    const [tokens, users] = [await made.run('token', 'list'), await made.run('user', 'list')]

    const [latest, late] = ['+275760-09-13T00:00:00.000Z', '8640000000000001 ms']
    const [early, blocked] = ['-8640000000000001 ms', '9007199254740991 ms']
    expect(await made.tokens()).toMatchObject([{ created: latest, expires: late }, { user: 'you' }])
    expect(await made.json('user', 'list')).toMatchObject([{ created: early, blocked }, { user: 'you' }])
    expect(cellsOf(tokens.stdout).map((row) => row.slice(4, 6))).toMatchObject([
      {},
      [latest, late],
      [ISO_TIME, 'never'],
    ])
    expect(cellsOf(users.stdout).map((row) => row.slice(3))).toMatchObject([{}, [early, blocked], [ISO_TIME, 'no']])
  })

  test('prints with --user only the tokens of the user, and exits with 1 for an unknown user', async () => {
    using made = await makeTokens('me', 'you', 'me')

    expect(await made.idsOf('--user', 'me')).toEqual([1, 3])
    expect(await made.run('token', 'list', '--json', '--user', 'nobody')).toEqual(
      refusal(1, 'There is no user nobody.'),
    )
  })

  test.each([PAGE_ROWS, PAGE_ROWS + 1])('prints %d tokens as one table and as one array', async (count) => {
    using made = await makeTokens('me')
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

  test('prints with --limit and --after the tokens that follow an id, and exits with 2 for other values', async () => {
    using made = await makeTokens('me', 'you', 'me', 'me')

    expect(await made.idsOf('--limit', '2')).toEqual([1, 2])
    expect(await made.idsOf('--after', '2', '--limit', '2147483647')).toEqual([3, 4])
    expect(await made.idsOf('--after', '1', '--limit', '1', '--user', 'me')).toEqual([3])
    expect(await made.idsOf('--after', '0')).toEqual([1, 2, 3, 4])
    expect(await made.idsOf('--after', '9007199254740991')).toEqual([])
    for (const [flag, value] of Object.entries({ '--after': '9007199254740992', '--limit': '0' }))
      expect(await made.run('token', 'list', flag, value)).toEqual(refusalWith(2, flag))
  })

  test('prints only the header, or an empty array, without tokens', async () => {
    using made = await makeTokens('me')
    await made.run('user', 'delete', 'me', '--yes')

    expect((await made.run('token', 'list')).stdout).toMatch(/^id {2}[^\n]*replaced by\n$/)
    expect((await made.run('token', 'list', '--json')).stdout).toBe('[]\n')
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
