import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { BUSY_TIMEOUT_MS, openWriter } from '../../src/store/sqlite/connection.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { createTokenIn } from '../support/tokens.ts'

const MANY_PLANTS = 50_000

const run = (database: string, ...args: readonly string[]) => runPlantstore([...args, '--database', database])

const addPlants = (database: string, user: string, count: number) => {
  using db = new Database(database)
  db.run(
    `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?2)
     insert into plants (user_id, id, name) select users.id, series.id, 'Fern' from users, series where users.name = ?1`,
    [user, count],
  )
}

describe('user list', () => {
  test('prints the users with their number of plants and tokens', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    for (const user of ['me', 'me', 'you']) await createTokenIn(database, user)
    addPlants(database, 'you', 3)
    const { stdout, stderr, exitCode } = await run(database, 'user', 'list')

    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
    expect(columns(stdout)).toEqual([
      ['user', 'plants', 'tokens'],
      ['me', '0', '2'],
      ['you', '3', '1'],
    ])
  })

  test('prints control characters in the name of a user as JSON escapes', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database, 'me')
    {
      using db = new Database(database)
      db.run("update users set name = 'a\u001b[2K\n\u009b\u2028\u202eb'")
    }
    const { stdout } = await run(database, 'user', 'list')

    expect(columns(stdout)).toEqual([
      ['user', 'plants', 'tokens'],
      [String.raw`a\u001b[2K\u000a\u009b\u2028\u202eb`, '0', '1'],
    ])
  })
})

test('user list --json prints an array of users with their number of plants and tokens', async () => {
  using folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  await createTokenIn(database, 'me')
  addPlants(database, 'me', 3)
  const { stdout, stderr, exitCode } = await run(database, 'user', 'list', '--json')

  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
  const created = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(JSON.parse(stdout)).toEqual([{ user: 'me', plants: 3, tokens: 1, created }])
})

/** The first three columns of a table. */
const columns = (table: string) =>
  table
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/).slice(0, 3))

const SECRET_NAMES = Array.from({ length: 60 }, (_, id) => `secret-plant-${id}-${'x'.repeat(id * 100)}`)

const contentsIn = (folder: string) => readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'))

describe('user delete', () => {
  test('without --yes exits with 2 and deletes nothing', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database, 'me')
    addPlants(database, 'me', 2)
    const refused = await run(database, 'user', 'delete', 'me')

    expect(refused).toMatchObject({ stdout: '', exitCode: 2 })
    expect(refused.stderr).toMatch(/^[^\n]*--yes[^\n]*\n$/)
    expect(columns((await run(database, 'user', 'list')).stdout)).toContainEqual(['me', '2', '1'])
  })

  test('leaves no byte of what the user stored in any file', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database, 'secret-user')
    {
      using db = openWriter(database, 'full')
      for (const [id, name] of SECRET_NAMES.entries()) {
        db.run('insert into plants (user_id, id, name, tag) select id, ?1, ?2, ?3 from users', [id, name, 'secret-tag'])
      }
    }
    const before = contentsIn(folder.path).join()
    const { exitCode } = await run(database, 'user', 'delete', 'secret-user', '--yes')

    expect(exitCode).toBe(0)
    expect(before).toContain('secret-plant')
    expect(contentsIn(folder.path).filter((bytes) => bytes.includes('secret-'))).toEqual([])
  })

  test('beside a server leaves no byte of what the user stored in any file, once the server has ended', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database, 'secret-user')
    await using server = await serve(database)
    const statuses = new Set<number>()
    for (const [id, name] of SECRET_NAMES.entries()) {
      const body = { id, name, tag: 'secret-tag' }
      statuses.add((await server.request('POST', '/plants', { token, body })).status)
    }
    const before = contentsIn(folder.path).join()
    const { exitCode } = await run(database, 'user', 'delete', 'secret-user', '--yes')
    const refused = await server.request('GET', '/plants', { token })

    expect([exitCode, await server.end()]).toEqual([0, 0])
    expect([...statuses, refused.status]).toEqual([200, 401])
    expect(before).toContain('secret-plant')
    expect(contentsIn(folder.path).filter((bytes) => bytes.includes('secret-'))).toEqual([])
  })

  test('of an unknown user exits with 1', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database, 'me')
    const refused = await run(database, 'user', 'delete', 'nobody', '--yes')

    expect(refused).toEqual({ stdout: '', stderr: 'plantstore: There is no user nobody.\n', exitCode: 1 })
  })

  test('leaves nothing of the user and everything of the others', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    for (const user of ['gone', 'stays', 'gone']) await createTokenIn(database, user)
    for (const user of ['gone', 'stays']) addPlants(database, user, 2500)
    const deleted = await run(database, 'user', 'delete', 'gone', '--yes')
    using db = new Database(database)

    expect(deleted).toMatchObject({ stdout: '', exitCode: 0 })
    expect(deleted.stderr).toEndWith('Deleted user gone with 2 tokens and 2500 plants.\n')
    const counts = db.query(`select (select count(*) from plants where user_id in (select id from users)) as plants,
      (select count(*) from tokens where user_id in (select id from users)) as tokens,
      (select count(*) from plants) as allPlants, (select count(*) from tokens) as allTokens`)
    expect(counts.get()).toEqual({ plants: 2500, tokens: 1, allPlants: 2500, allTokens: 1 })
    expect(db.query('select name from users').all()).toEqual([{ name: 'stays' }])
  })

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'ends by %s between two batches, says how far it came, and deletes the rest when it is run again',
    async (signal) => {
      using folder = makeFolder()
      const database = join(folder.path, 'plantstore.db')
      for (const user of ['gone', 'stays']) await createTokenIn(database, user)
      addPlants(database, 'gone', MANY_PLANTS)
      const args = ['user', 'delete', 'gone', '--yes', '--json', '--database', database]
      const { child, ended } = startProgram([...COMMAND, ...args])
      {
        using db = new Database(database)
        const select = db.query('select id from plants order by id limit 1')
        while (child.exitCode === null && select.values()[0]?.[0] === 1) await Bun.sleep(1)
      }
      child.kill(signal)
      const { stdout, stderr, exitCode } = await ended
      const [gone] = columns((await run(database, 'user', 'list')).stdout).slice(1)
      const left = Number(gone?.[1])
      {
        using db = new Database(database)
        db.run('delete from plants where id <= ?1', [MANY_PLANTS - 2])
      }
      const again = await run(database, 'user', 'delete', 'gone', '--yes', '--json')

      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: signal === 'SIGINT' ? 130 : 143 })
      expect(stderr).toEndWith(
        `Stopped by ${signal}: all tokens of user gone and ${MANY_PLANTS - left} of ${MANY_PLANTS} plants are deleted. Run the same command again to delete the rest.\n`,
      )
      expect(gone).toEqual(['gone', String(left), '0'])
      expect(left).toBeGreaterThan(0)
      expect(again.exitCode).toBe(0)
      expect(again.stderr).toEndWith('Deleted user gone with 0 tokens and 2 plants.\n')
      expect(JSON.parse(again.stdout)).toEqual({ user: 'gone', tokens: 0, plants: 2 })
      expect(columns((await run(database, 'user', 'list')).stdout).slice(1)).toEqual([['stays', '0', '1']])
    },
  )

  test('shows its progress on a terminal, and clears it before it says that Ctrl-C has stopped it', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await createTokenIn(database, 'me')
    addPlants(database, 'me', MANY_PLANTS)
    const { text, exitCode } = await runOnTerminal(['user', 'delete', 'me', '--yes', '--database', database], {
      interruptAt: 'plants of me deleted',
    })
    const told = text.split('\u001b[2K').at(-1)

    expect(exitCode).toBe(130)
    expect(text).toContain(`0 of ${MANY_PLANTS} plants of me deleted`)
    expect(told).toMatch(/^Stopped by SIGINT: all tokens of user me and \d+ of \d+ plants are deleted\. .+\r\n$/)
  })

  test('gives a user of the same name nothing of what was deleted', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const old = await createTokenIn(database, 'me')
    addPlants(database, 'me', 2)
    await run(database, 'user', 'delete', 'me', '--yes')
    const fresh = await createTokenIn(database, 'me')
    await using server = await serve(database)
    const answers = await Promise.all([
      server.request('GET', '/plants', { token: old }),
      server.request('GET', '/plants', { token: fresh }),
    ])

    expect(answers.map(({ status }) => status)).toEqual([401, 200])
    expect(await answers[1]?.json()).toEqual([])
  })

  test('beside a server refuses the token at once, and keeps no create of another user waiting', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const gone = await createTokenIn(database, 'gone')
    const stays = await createTokenIn(database, 'stays')
    addPlants(database, 'gone', MANY_PLANTS)
    await using server = await serve(database)
    let isDeleting = true
    const deleting = run(database, 'user', 'delete', 'gone', '--yes').finally(() => {
      isDeleting = false
    })
    while ((await server.request('GET', '/plants', { token: gone })).status === 200 && isDeleting);
    const wasDeletingWhenRefused = isDeleting
    const creates: { status: number; ms: number }[] = []
    while (isDeleting) {
      const startMs = performance.now()
      const { status } = await server.request('POST', '/plants', {
        token: stays,
        body: { id: creates.length, name: 'Ivy' },
      })
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
