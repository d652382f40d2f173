import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { USER_PAGE_ROWS } from '../../src/cli/commands/user.ts'
import { BUSY_TIMEOUT_MS } from '../../src/store/sqlite/driver.ts'
import { COMMAND, serve } from '../support/executable.ts'
import { MEMORY } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { done, refusal, refusalWith } from './support/answers.ts'
import { makeDatabase } from './support/database.ts'

const MANY_PLANTS = 50_000

const addPlantsOf = (database: string, user: string, count: number) => {
  using db = new Database(database)
  db.run(
    `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?2)
     insert into plants (user_id, id, name) select users.id, series.id, 'Fern' from users, series where users.name = ?1`,
    [user, count],
  )
}

/** A database with a token of each of these users. */
async function makeUsers(...users: readonly string[]) {
  const made = makeDatabase()
  const tokens: string[] = []
  for (const user of users) tokens.push(await createTokenIn(made.database, user))
  return { ...made, tokens }
}

describe('user list', () => {
  test('prints the users with their numbers of plants and tokens, as a table and with --json', async () => {
    using made = await makeUsers('me', 'me', 'you')
    addPlantsOf(made.database, 'you', 3)
    await made.run('user', 'block', 'you')
    const table = await made.run('user', 'list')
    const json = await made.run('user', 'list', '--json')

    expect([table, json]).toMatchObject(Array(2).fill({ stderr: '', exitCode: 0 }))
    const [created, blocked] = Array(2).fill(expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/))
    expect(columns(table.stdout, 5)).toEqual([
      ['user', 'plants', 'tokens', 'created', 'blocked'],
      ['me', '0', '2', created, 'no'],
      ['you', '3', '1', created, blocked],
    ])
    expect(JSON.parse(json.stdout)).toEqual([
      { user: 'me', plants: 0, tokens: 2, created, blocked: null },
      { user: 'you', plants: 3, tokens: 1, created, blocked },
    ])
  })

  test('prints more users than a page has, and with --limit and --after those that follow a name', async () => {
    using made = await makeUsers('me')
    {
      using db = new Database(made.database)
      db.run(
        `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?1)
         insert into users (name, created_at_ms) select printf('u%05d', id), 0 from series`,
        [USER_PAGE_ROWS],
      )
    }
    const namesOf = async (...args: readonly string[]) =>
      JSON.parse((await made.run('user', 'list', '--json', ...args)).stdout).map(
        ({ user }: { readonly user: string }) => user,
      )
    const all = ['me', ...Array.from({ length: USER_PAGE_ROWS }, (_, index) => `u${`${index + 1}`.padStart(5, '0')}`)]
    const table = await made.run('user', 'list')

    expect(await namesOf()).toEqual(all)
    expect(columns(table.stdout, 1).flat()).toEqual(['user', ...all])
    expect(await namesOf('--limit', '2')).toEqual(['me', 'u00001'])
    expect(await namesOf('--after', 'n', '--limit', '2')).toEqual(['u00001', 'u00002'])
    expect(await namesOf('--after', 'u09999', '--limit', '2')).toEqual(['u10000'])
    expect(await made.run('user', 'list', '--after', 'm e')).toEqual(refusalWith(2, '--after'))
    expect(await made.run('user', 'list', '--limit', '0')).toEqual(refusalWith(2, '--limit'))
  })
})

/** The first columns of a table. */
const columns = (table: string, count = 3) =>
  table
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/).slice(0, count))

const SECRET_NAMES = Array.from({ length: 60 }, (_, id) => `secret-plant-${id}-${'x'.repeat(id * 100)}`)

const contentsIn = (folder: string) => readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'))

describe('user delete', () => {
  test('exits with 2 without --yes, and with 1 for an unknown user, and deletes nothing', async () => {
    using made = await makeUsers('me')
    const { database, run } = made
    addPlantsOf(database, 'me', 2)

    expect(await run('user', 'delete', 'nobody', '--yes')).toEqual(refusal(1, 'There is no user nobody.'))
    expect(await run('user', 'delete', 'me')).toEqual(refusalWith(2, '--yes'))
    expect(columns((await run('user', 'list')).stdout)).toContainEqual(['me', '2', '1'])
  })

  test.each([
    ['at rest', true],
    ['beside a server, once the server has ended', false],
  ])('leaves no byte of the plants in any file, %s', async (_, isAtRest) => {
    using made = await makeUsers('secret-user')
    const { database, run, tokens } = made
    const [token = ''] = tokens
    await using server = await serve(database)
    const statuses = new Set<number>()
    for (const [id, name] of SECRET_NAMES.entries()) {
      const body = { id, name, tag: 'secret-tag' }
      statuses.add((await server.request('POST', '/plants', { token, body })).status)
    }
    if (isAtRest) await server.end()
    const before = contentsIn(made.folder).join()
    const { exitCode } = await run('user', 'delete', 'secret-user', '--yes')

    expect([exitCode, await server.end()]).toEqual([0, 0])
    expect([...statuses]).toEqual([200])
    expect(before).toContain('secret-plant')
    expect(contentsIn(made.folder).filter((bytes) => bytes.includes('secret-'))).toEqual([])
  })

  test('leaves nothing of the user, also for a later one of the same name, and everything of the others', async () => {
    using made = await makeUsers('gone', 'stays', 'gone')
    const { database, run } = made
    for (const user of ['gone', 'stays']) addPlantsOf(database, user, 2500)
    const deleted = await run('user', 'delete', 'gone', '--yes')
    using db = new Database(database)

    expect(deleted).toMatchObject({ stdout: '', exitCode: 0 })
    expect(deleted.stderr).toEndWith('Deleted user gone with 2 tokens and 2500 plants.\n')
    const counts = db.query(`select (select count(*) from plants where user_id in (select id from users)) as plants,
      (select count(*) from tokens where user_id in (select id from users)) as tokens,
      (select count(*) from plants) as allPlants, (select count(*) from tokens) as allTokens`)
    expect(counts.get()).toEqual({ plants: 2500, tokens: 1, allPlants: 2500, allTokens: 1 })
    expect(db.query('select name from users').all()).toEqual([{ name: 'stays' }])
    // A later user of the same name has nothing of the deleted user.
    await createTokenIn(database, 'gone')
    expect(columns((await run('user', 'list')).stdout)).toContainEqual(['gone', '0', '1'])
  })

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'ends by %s between two batches, says how far it came, and deletes the rest when it is run again',
    async (signal) => {
      using made = await makeUsers('gone', 'stays')
      const { database, run } = made
      addPlantsOf(database, 'gone', MANY_PLANTS)
      const args = ['user', 'delete', 'gone', '--yes', '--json', '--database', database]
      const { child, ended } = startProgram([...COMMAND, ...args])
      {
        using db = new Database(database)
        const select = db.query('select id from plants order by id limit 1')
        await until('the first plants are deleted', () => select.values()[0]?.[0] !== 1)
      }
      child.kill(signal)
      const { stdout, stderr, exitCode } = await ended
      const [gone] = columns((await run('user', 'list')).stdout).slice(1)
      const left = Number(gone?.[1])
      {
        using db = new Database(database)
        db.run('delete from plants where id <= ?1', [MANY_PLANTS - 2])
      }
      const again = await run('user', 'delete', 'gone', '--yes', '--json')

      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: signal === 'SIGINT' ? 130 : 143 })
      expect(stderr).toEndWith(
        `Stopped by ${signal}: all tokens of user gone and ${MANY_PLANTS - left} of ${MANY_PLANTS} plants are deleted. Run the same command again to delete the rest.\n`,
      )
      expect(gone).toEqual(['gone', String(left), '0'])
      expect(left).toBeGreaterThan(0)
      expect(again.exitCode).toBe(0)
      expect(again.stderr).toEndWith('Deleted user gone with 0 tokens and 2 plants.\n')
      expect(JSON.parse(again.stdout)).toEqual({ user: 'gone', tokens: 0, plants: 2 })
      expect(columns((await run('user', 'list')).stdout).slice(1)).toEqual([['stays', '0', '1']])
    },
  )

  test('ends when a server refuses the tokens, also if it has just answered a cached list', async () => {
    using made = makeDatabase(MEMORY)
    const { database, run } = made
    await using server = await serve(database)
    const statuses: number[] = []
    for (const user of Array.from({ length: 10 }, (_, index) => `user-${index}`)) {
      const token = await createTokenIn(database, user)
      const list = async () => (await server.request('GET', '/plants?limit=5', { token })).status
      // After a list the server trusts its caches for some milliseconds. Many users, because a slow exit can hide this.
      let isDeleting = true
      const deleting = run('user', 'delete', user, '--yes').finally(() => {
        isDeleting = false
      })
      while (isDeleting) await list()
      expect(await deleting).toEqual(done(`Deleted user ${user} with 1 token and 0 plants.`))
      statuses.push(await list())
    }

    expect(statuses).toEqual(Array(10).fill(401))
  })

  test('beside a server refuses the token at once, and keeps no create of another user waiting', async () => {
    // In memory a sync waits for no disk: only the locks of the command can hold a create up.
    using made = makeDatabase(MEMORY)
    const { database, run } = made
    const gone = await createTokenIn(database, 'gone')
    const stays = await createTokenIn(database, 'stays')
    addPlantsOf(database, 'gone', MANY_PLANTS)
    await using server = await serve(database)
    let isDeleting = true
    const deleting = run('user', 'delete', 'gone', '--yes').finally(() => {
      isDeleting = false
    })
    while ((await server.request('GET', '/plants?limit=1', { token: gone })).status === 200 && isDeleting);
    const wasDeletingWhenRefused = isDeleting
    const creates: { status: number; ms: number }[] = []
    while (isDeleting) {
      const startMs = performance.now()
      const body = { id: creates.length, name: 'Ivy' }
      const { status } = await server.request('POST', '/plants', { token: stays, body })
      creates.push({ status, ms: performance.now() - startMs })
    }

    expect(wasDeletingWhenRefused).toBe(true)
    expect((await deleting).stderr).toContain(`1 token and ${MANY_PLANTS} plants`)
    expect(creates.length).toBeGreaterThan(10)
    expect(creates.filter(({ status, ms }) => status !== 200 || ms >= BUSY_TIMEOUT_MS)).toEqual([])
    expect((await server.request('GET', '/plants', { token: gone })).status).toBe(401)
    expect(await (await server.request('GET', '/plants', { token: stays })).json()).toHaveLength(creates.length)
  })
})
