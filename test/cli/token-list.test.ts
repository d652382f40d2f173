import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { PAGE_ROWS } from '../../src/domain/store.ts'
import { runSql } from '../store/sqlite/files.ts'
import { until } from '../support/until.ts'
import { refusal, refusalWith } from './support/answers.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

type Run = ReturnType<typeof makeDatabase>['run']
const create = async (run: Run, user: string, ...args: readonly string[]) =>
  (await run('token', 'create', '--user', user, ...args)).stdout.trim()
const list = async (run: Run) => JSON.parse((await run('token', 'list', '--json')).stdout)

/** Adds so many tokens of the first user. */
const addTokens = (database: string, count: number) => {
  using db = new Database(database)
  db.run(
    `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?1)
     insert into tokens (user_id, hash, scope, created_at_ms) select 1, randomblob(32), 'write', 0 from series`,
    [count],
  )
}

const ISO_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describe.concurrent('token list', () => {
  test('prints everything but the text of the tokens, as a table and with --json', async () => {
    using made = makeDatabase()
    const texts = [
      await create(made.run, 'me'),
      await create(made.run, 'you', '--scope', 'read', '--expires', '90d', '--label', 'laptop'),
    ]
    await made.run('token', 'revoke', '1')
    const table = await made.run('token', 'list')
    const json = await made.run('token', 'list', '--json')

    const unused = { created: ISO_TIME, lastUsed: null, replacedBy: null }
    expect(JSON.parse(json.stdout)).toEqual([
      { id: 1, user: 'me', scope: 'write', label: null, ...unused, expires: null, state: 'revoked' },
      { id: 2, user: 'you', scope: 'read', label: 'laptop', ...unused, expires: ISO_TIME, state: 'active' },
    ])
    const [, { created, expires }] = JSON.parse(json.stdout)
    expect(Date.parse(expires) - Date.parse(created)).toBe(90 * 86_400_000)
    expect(Object.keys(JSON.parse(json.stdout)[0])).toEqual(
      'id user scope label created expires lastUsed state replacedBy'.split(' '),
    )
    expect(table.stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['id', 'user', 'scope', 'label', 'created', 'expires', 'last used', 'state', 'replaced by'],
      ['1', 'me', 'write', '-', ISO_TIME, 'never', 'never', 'revoked', '-'],
      ['2', 'you', 'read', 'laptop', ISO_TIME, ISO_TIME, 'never', 'active', '-'],
      [''],
    ])
    expect([table, json]).toMatchObject(Array(2).fill({ stderr: '', exitCode: 0 }))
    for (const text of texts) expect(table.stdout + json.stdout).not.toContain(text.slice('plst_'.length))
  })

  test('prints control characters in a label as JSON escapes, in the table and with --json', async () => {
    using made = makeDatabase()
    await create(made.run, 'me', '--label', 'laptop')
    const label = 'a\u001b[2K\n\u009b\u2028\u202eb'
    {
      using db = new Database(made.database)
      db.run('update tokens set label = ?1', [label])
    }
    const [table, json] = await Promise.all([made.run('token', 'list'), made.run('token', 'list', '--json')])

    const escaped = String.raw`a\u001b[2K\u000a\u009b\u2028\u202eb`
    expect(table.stdout.split('\n')[1]).toContain(`  ${escaped}  `)
    expect(json.stdout).toContain(`"label": "${escaped.replace('u000a', 'n')}"`)
    expect(JSON.parse(json.stdout)).toMatchObject([{ label }])
  })

  test('and user list print a time that no date can show in milliseconds, and all other rows', async () => {
    using made = makeDatabase()
    for (const user of ['me', 'you']) await create(made.run, user)
    runSql(
      made.database,
      `update tokens set created_at_ms = 8640000000000000, expires_at_ms = 8640000000000001 where id = 1`,
      'update users set created_at_ms = -8640000000000001, blocked_at_ms = 9007199254740991 where id = 1',
    )
    const [latest, late] = ['+275760-09-13T00:00:00.000Z', '8640000000000001 ms']
    const [early, blocked] = ['-8640000000000001 ms', '9007199254740991 ms']
    const rowsOf = async (command: string) =>
      (await made.run(command, 'list')).stdout.split('\n').map((line) => line.split(/ {2,}/))
    const users = JSON.parse((await made.run('user', 'list', '--json')).stdout)

    expect(await list(made.run)).toMatchObject([
      { created: latest, expires: late },
      { user: 'you', created: ISO_TIME },
    ])
    expect(users).toMatchObject([
      { created: early, blocked },
      { user: 'you', created: ISO_TIME, blocked: null },
    ])
    expect((await rowsOf('token')).map((row) => row.slice(4, 6)).slice(1, 3)).toEqual([
      [latest, late],
      [ISO_TIME, 'never'],
    ])
    expect((await rowsOf('user')).map((row) => row.slice(3)).slice(1, 3)).toEqual([
      [early, blocked],
      [ISO_TIME, 'no'],
    ])
  })

  test('prints with --user only the tokens of the user, and exits with 1 for an unknown user', async () => {
    using made = makeDatabase()
    for (const user of ['me', 'you', 'me']) await create(made.run, user)
    const mine = await made.run('token', 'list', '--json', '--user', 'me')
    const unknown = await made.run('token', 'list', '--json', '--user', 'nobody')

    expect(JSON.parse(mine.stdout)).toMatchObject([{ id: 1 }, { id: 3 }])
    expect(unknown).toEqual(refusal(1, 'There is no user nobody.'))
  })

  test.each([PAGE_ROWS, PAGE_ROWS + 1])('prints %d tokens as one table and as one array', async (count) => {
    using made = makeDatabase()
    await create(made.run, 'me')
    addTokens(made.database, count - 1)
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
    using made = makeDatabase()
    for (const user of ['me', 'you', 'me', 'me']) await create(made.run, user)
    const idsOf = async (...args: readonly string[]) =>
      JSON.parse((await made.run('token', 'list', '--json', ...args)).stdout).map(
        ({ id }: { readonly id: number }) => id,
      )

    expect(await idsOf('--limit', '2')).toEqual([1, 2])
    expect(await idsOf('--after', '2', '--limit', '2147483647')).toEqual([3, 4])
    expect(await idsOf('--after', '1', '--limit', '1', '--user', 'me')).toEqual([3])
    expect(await idsOf('--after', '0')).toEqual([1, 2, 3, 4])
    expect(await idsOf('--after', '9007199254740991')).toEqual([])
    for (const value of ['', '-1', '1.5', '1e3', '01', '0x1', 'me', '9007199254740992'])
      expect(await made.run('token', 'list', `--after=${value}`)).toEqual(refusalWith(2, '--after'))
    for (const value of ['', '0', '-1', '1.5', '05', '2147483648'])
      expect(await made.run('token', 'list', `--limit=${value}`)).toEqual(refusalWith(2, '--limit'))
  })

  test('prints only the header, or an empty array, without tokens', async () => {
    using made = makeDatabase()
    await create(made.run, 'me')
    await made.run('user', 'delete', 'me', '--yes')
    const [table, json] = await Promise.all([made.run('token', 'list'), made.run('token', 'list', '--json')])

    expect(table.stdout).toMatch(/^id {2}[^\n]*replaced by\n$/)
    expect(json.stdout).toBe('[]\n')
  })
})

describe.concurrent('a server writes the last use of a token', () => {
  test('while it runs, and not again within a minute', async () => {
    await using service = await serveDatabase()
    const { server, token, run } = service
    await create(run, 'me')
    const beforeMs = Date.now()
    await server.request('GET', '/plants', { token })
    const afterMs = Date.now()
    const tokens = await until('the use is stored', async () => {
      const listed = await list(run)
      return listed[0].lastUsed !== null && listed
    })
    await server.request('GET', '/plants', { token })
    await server.end()

    const usedMs = Date.parse(tokens[0].lastUsed)
    expect(usedMs).toBeGreaterThanOrEqual(beforeMs)
    expect(usedMs).toBeLessThanOrEqual(afterMs)
    expect(tokens[1].lastUsed).toBeNull()
    expect(await list(run)).toEqual(tokens)
  })

  test('at its end, and answers the request while nothing can be written', async () => {
    await using service = await serveDatabase()
    const { server, token, run } = service
    using other = new Database(service.database)
    other.run('begin immediate')
    const { status } = await server.request('GET', '/plants', { token })
    const isLocked = other.inTransaction
    other.run('rollback')
    await server.end()

    expect({ status, isLocked }).toEqual({ status: 200, isLocked: true })
    expect(await list(run)).toMatchObject([{ lastUsed: ISO_TIME }])
  })
})
