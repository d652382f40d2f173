import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'

const run = (database: string, ...args: readonly string[]) => runPlantstore(['token', ...args, '--database', database])
const create = async (database: string, user: string, ...args: readonly string[]) =>
  (await run(database, 'create', '--user', user, ...args)).stdout.trim()
const list = async (database: string) => JSON.parse((await run(database, 'list', '--json')).stdout)

const POLL_MS = 100
const ISO_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

describe.concurrent('token list', () => {
  test('prints with --json an array of objects that say everything but the token', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const texts = [
      await create(database, 'me'),
      await create(database, 'you', '--scope', 'read', '--expires', '90d', '--label', 'laptop'),
    ]
    await run(database, 'revoke', '1')
    const { stdout, stderr, exitCode } = await run(database, 'list', '--json')
    const tokens = JSON.parse(stdout)

    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
    const unused = { created: ISO_TIME, lastUsed: null }
    expect(tokens).toEqual([
      { id: 1, user: 'me', scope: 'write', label: null, ...unused, expires: null, state: 'revoked' },
      { id: 2, user: 'you', scope: 'read', label: 'laptop', ...unused, expires: ISO_TIME, state: 'active' },
    ])
    expect(Object.keys(tokens[0])).toEqual('id user scope label created expires lastUsed state'.split(' '))
    for (const text of texts) expect(stdout).not.toContain(text.slice('plst_'.length))
  })

  test('prints a table that says everything but the token', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const text = await create(database, 'me', '--label', 'laptop')
    const { stdout, stderr, exitCode } = await run(database, 'list')
    const lines = stdout.split('\n').map((line) => line.split(/ {2,}/))

    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
    expect(lines).toEqual([
      ['id', 'user', 'scope', 'label', 'created', 'expires', 'last used', 'state'],
      ['1', 'me', 'write', 'laptop', ISO_TIME, 'never', 'never', 'active'],
      [''],
    ])
    expect(stdout).not.toContain(text.slice('plst_'.length))
  })

  test('prints control characters in a label as JSON escapes, in the table and with --json', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await create(database, 'me', '--label', 'laptop')
    const label = 'a\u001b[2K\n\u009b\u2028\u202eb'
    {
      using db = new Database(database)
      db.run('update tokens set label = ?1', [label])
    }
    const [table, json] = await Promise.all([run(database, 'list'), run(database, 'list', '--json')])

    const escaped = String.raw`a\u001b[2K\u000a\u009b\u2028\u202eb`
    expect(table.stdout.split('\n')[1]).toContain(`  ${escaped}  `)
    expect(json.stdout).toContain(`"label": "${escaped.replace('u000a', 'n')}"`)
    expect(JSON.parse(json.stdout)).toMatchObject([{ label }])
  })

  test('prints the tokens of a user alone, and exits with 1 where there is no such user', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    for (const user of ['me', 'you', 'me']) await create(database, user)
    const [mine, nobodys] = await Promise.all([
      run(database, 'list', '--json', '--user', 'me'),
      run(database, 'list', '--json', '--user', 'nobody'),
    ])

    expect(JSON.parse(mine.stdout)).toMatchObject([{ id: 1 }, { id: 3 }])
    expect(nobodys).toEqual({ stdout: '', stderr: 'plantstore: There is no user nobody.\n', exitCode: 1 })
  })

  test('prints nothing but the head, or an empty array, where there is no token', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await using _server = await serve(database)
    const [table, json] = await Promise.all([run(database, 'list'), run(database, 'list', '--json')])

    expect(table.stdout).toMatch(/^id {2}[^\n]*state\n$/)
    expect(json.stdout).toBe('[]\n')
  })
})

describe.concurrent('the last use of a token', () => {
  test('is written while the server runs, and not again within a minute', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await create(database, 'me')
    await create(database, 'me')
    await using server = await serve(database)
    const beforeMs = Date.now()
    await server.request('GET', '/plants', { token })
    const afterMs = Date.now()
    let tokens = await list(database)
    while (tokens[0].lastUsed === null) {
      await Bun.sleep(POLL_MS)
      tokens = await list(database)
    }
    await server.request('GET', '/plants', { token })
    await server.end()

    const usedMs = Date.parse(tokens[0].lastUsed)
    expect(usedMs).toBeGreaterThanOrEqual(beforeMs)
    expect(usedMs).toBeLessThanOrEqual(afterMs)
    expect(tokens[1].lastUsed).toBeNull()
    expect(await list(database)).toEqual(tokens)
  })

  test('is written at the end of the server', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await create(database, 'me')
    await using server = await serve(database)
    await server.request('GET', '/plants', { token })
    await server.end()

    expect(await list(database)).toMatchObject([{ lastUsed: ISO_TIME }])
  })

  test('is not waited for by the request: it is answered while nothing can be written', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await create(database, 'me')
    await using server = await serve(database)
    using other = new Database(database)
    other.run('begin immediate')
    const { status } = await server.request('GET', '/plants', { token })
    const isLocked = other.inTransaction
    other.run('rollback')
    await server.end()

    expect({ status, isLocked }).toEqual({ status: 200, isLocked: true })
    expect(await list(database)).toMatchObject([{ lastUsed: ISO_TIME }])
  })
})
