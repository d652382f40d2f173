import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { refusal } from './support/answers.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

type Run = ReturnType<typeof makeDatabase>['run']
const create = async (run: Run, user: string, ...args: readonly string[]) =>
  (await run('token', 'create', '--user', user, ...args)).stdout.trim()
const list = async (run: Run) => JSON.parse((await run('token', 'list', '--json')).stdout)

const POLL_MS = 100
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

  test('prints with --user only the tokens of the user, and exits with 1 for an unknown user', async () => {
    using made = makeDatabase()
    for (const user of ['me', 'you', 'me']) await create(made.run, user)
    const mine = await made.run('token', 'list', '--json', '--user', 'me')
    const unknown = await made.run('token', 'list', '--json', '--user', 'nobody')

    expect(JSON.parse(mine.stdout)).toMatchObject([{ id: 1 }, { id: 3 }])
    expect(unknown).toEqual(refusal(1, 'There is no user nobody.'))
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
    let tokens = await list(run)
    while (tokens[0].lastUsed === null) {
      await Bun.sleep(POLL_MS)
      tokens = await list(run)
    }
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
