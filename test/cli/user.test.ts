import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openWriter } from '../../src/store/sqlite/connection.ts'
import { runPlantstore, startExecutable } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { makeToken } from '../support/tokens.ts'

const MANY_PLANTS = 50_000
/** A create beside a deletion waits for a batch of it at most; this is for a machine that is busy with other things. */
const CREATE_LIMIT_MS = 1000

const run = (database: string, ...args: readonly string[]) => runPlantstore([...args, '--database', database])

const addPlants = (database: string, user: string, count: number) => {
  using db = new Database(database)
  db.run(
    `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?2)
     insert into plants (user_id, id, name) select users.id, series.id, 'Fern' from users, series where users.name = ?1`,
    [user, count],
  )
}

const serve = async (database: string) => {
  const server = await startExecutable(['serve', '--listen', '127.0.0.1:0', '--database', database])
  const request = (method: string, token: string, body?: string) =>
    fetch(`${server.url}/plants`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body }),
    })
  return { ...server, request, [Symbol.asyncDispose]: server.kill }
}

describe('user list', () => {
  test('prints the users with their number of plants and tokens, as a table and as JSON', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    for (const user of ['me', 'me', 'you']) await makeToken(database, user)
    addPlants(database, 'you', 3)
    const [table, json] = await Promise.all([run(database, 'user', 'list'), run(database, 'user', 'list', '--json')])

    expect([table, json]).toMatchObject([
      { stderr: '', exitCode: 0 },
      { stderr: '', exitCode: 0 },
    ])
    expect(table.stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
      ['user', 'plants', 'tokens'],
      ['me', '0', '2'],
      ['you', '3', '1'],
      [''],
    ])
    expect(JSON.parse(json.stdout)).toMatchObject([
      { user: 'me', plants: 0, tokens: 2 },
      { user: 'you', plants: 3, tokens: 1 },
    ])
  })
})

describe('user delete', () => {
  test('without --yes exits with 2 and deletes nothing', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await makeToken(database, 'me')
    addPlants(database, 'me', 2)
    const refused = await run(database, 'user', 'delete', 'me')

    expect(refused).toMatchObject({ stdout: '', exitCode: 2 })
    expect(refused.stderr).toMatch(/^[^\n]*--yes[^\n]*\n$/)
    expect(JSON.parse((await run(database, 'user', 'list', '--json')).stdout)).toMatchObject([
      { user: 'me', plants: 2, tokens: 1 },
    ])
  })

  test('leaves no byte of what the user stored in any file', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const texts = Array.from({ length: 60 }, (_, id) => `secret-plant-${id}-${'x'.repeat(id * 100)}`)
    await makeToken(database, 'secret-user')
    const files = () => readdirSync(folder.path).map((name) => readFileSync(join(folder.path, name), 'latin1'))
    {
      using db = openWriter(database)
      for (const [id, text] of texts.entries()) {
        db.run('insert into plants (user_id, id, name, tag) select id, ?1, ?2, ?3 from users', [id, text, 'secret-tag'])
      }
    }
    const before = files().join()
    const { exitCode } = await run(database, 'user', 'delete', 'secret-user', '--yes')

    expect(exitCode).toBe(0)
    expect(before).toContain('secret-plant')
    expect(files().filter((bytes) => bytes.includes('secret-'))).toEqual([])
  })

  test('of an unknown user exits with 1', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await makeToken(database, 'me')
    const refused = await run(database, 'user', 'delete', 'nobody', '--yes')

    expect(refused).toEqual({ stdout: '', stderr: 'plantstore: There is no user nobody.\n', exitCode: 1 })
  })

  test('leaves nothing of the user and everything of the others', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    for (const user of ['gone', 'stays', 'gone']) await makeToken(database, user)
    for (const user of ['gone', 'stays']) addPlants(database, user, 2500)
    const deleted = await run(database, 'user', 'delete', 'gone', '--yes')
    using db = new Database(database)

    expect(deleted).toMatchObject({ stdout: '', exitCode: 0 })
    expect(deleted.stderr).toContain('2500 plants and 2 tokens')
    const counts = db.query(`select (select count(*) from plants where user_id in (select id from users)) as plants,
      (select count(*) from tokens where user_id in (select id from users)) as tokens,
      (select count(*) from plants) as allPlants, (select count(*) from tokens) as allTokens`)
    expect(counts.get()).toEqual({ plants: 2500, tokens: 1, allPlants: 2500, allTokens: 1 })
    expect(db.query('select name from users').all()).toEqual([{ name: 'stays' }])
  })

  test('gives a user of the same name nothing of what was deleted', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const old = await makeToken(database, 'me')
    addPlants(database, 'me', 2)
    await run(database, 'user', 'delete', 'me', '--yes')
    const fresh = await makeToken(database, 'me')
    await using server = await serve(database)
    const answers = await Promise.all([server.request('GET', old), server.request('GET', fresh)])

    expect(answers.map(({ status }) => status)).toEqual([401, 200])
    expect(await answers[1]?.json()).toEqual([])
  })

  test('beside a server refuses the token at once, and keeps no create of another user waiting', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const gone = await makeToken(database, 'gone')
    const stays = await makeToken(database, 'stays')
    addPlants(database, 'gone', MANY_PLANTS)
    await using server = await serve(database)
    let isDeleting = true
    const deleting = run(database, 'user', 'delete', 'gone', '--yes').finally(() => {
      isDeleting = false
    })
    while ((await server.request('GET', gone)).status === 200 && isDeleting);
    const wasDeletingWhenRefused = isDeleting
    const creates: { status: number; ms: number }[] = []
    while (isDeleting) {
      const startMs = performance.now()
      const { status } = await server.request('POST', stays, `{"id":${creates.length},"name":"Ivy"}`)
      creates.push({ status, ms: performance.now() - startMs })
    }

    expect(wasDeletingWhenRefused).toBe(true)
    expect((await deleting).stderr).toContain(`${MANY_PLANTS} plants and 1 tokens`)
    expect(creates.length).toBeGreaterThan(10)
    expect(creates.filter(({ status, ms }) => status !== 200 || ms > CREATE_LIMIT_MS)).toEqual([])
    expect((await server.request('GET', gone)).status).toBe(401)
    expect(await (await server.request('GET', stays)).json()).toHaveLength(creates.length)
  })
})
