import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const CHECKSUM_LENGTH = 6

/** Computed here once more, because scanners elsewhere compute it from the format alone. */
function checksum(secret: string): string {
  let text = ''
  for (let rest = crc32(secret); text.length < CHECKSUM_LENGTH; rest = Math.floor(rest / BASE62.length)) {
    text = BASE62.charAt(rest % BASE62.length) + text
  }
  return text
}

const create = (database: string, ...args: readonly string[]) =>
  runPlantstore(['token', 'create', '--user', 'me', '--database', database, ...args])

const list = async (database: string) =>
  JSON.parse((await runPlantstore(['token', 'list', '--json', '--database', database])).stdout)

describe.concurrent('token create', () => {
  test('prints the token alone on stdout, and on stderr everything else', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const first = await create(database)
    const second = await create(database, '--scope', 'read')

    for (const { stdout, exitCode } of [first, second]) {
      expect(stdout).toMatch(/^plst_[0-9A-Za-z]{49}\n$/)
      expect(exitCode).toBe(0)
    }
    expect(first.stdout).not.toBe(second.stdout)
    expect([first.stderr, second.stderr]).toEqual([
      `Created a new, empty store: ${database}.\nCreated user me.\nCreated token 1 of user me (write). It is shown only once.\n`,
      'Created token 2 of user me (read). It is shown only once.\n',
    ])
  })

  test('makes a token whose end is the checksum of its 43 characters', async () => {
    using folder = makeFolder()
    const { stdout } = await create(join(folder.path, 'plantstore.db'))
    const [, secret = '', end = ''] = /^plst_(.{43})(.{6})\n$/.exec(stdout) ?? []

    expect(end).toBe(checksum(secret))
  })

  test('makes a token that never expires, with scope write and no label, where nothing else was asked for', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await create(database)

    expect(await list(database)).toMatchObject([
      { user: 'me', scope: 'write', label: null, expires: null, state: 'active' },
    ])
  })

  test('makes a token that a running server takes at once', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await using server = await serve(database)
    const { stdout } = await create(database, '--label', 'of the gardener')
    const answer = await server.request('GET', '/plants', { token: stdout.trim() })

    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual([])
  })

  test('makes a token with scope read that a running server lets list alone', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await using server = await serve(database)
    const token = (await create(database, '--scope', 'read')).stdout.trim()
    const listed = await server.request('GET', '/plants', { token })
    const created = await server.request('POST', '/plants', { token, body: '{"id":1,"name":"Fern"}' })

    expect([listed.status, created.status]).toEqual([200, 403])
  })

  test('makes a token that a running server takes until it expires', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    await using server = await serve(database)
    const { stdout } = await create(database, '--expires', '2s')
    let lastTakenMs = 0
    for (;;) {
      const sentMs = Date.now()
      if ((await server.request('GET', '/plants', { token: stdout.trim() })).status !== 200) break
      lastTakenMs = sentMs
    }
    const refusedMs = Date.now()
    const [token] = await list(database)

    expect(lastTakenMs).toBeGreaterThanOrEqual(Date.parse(token.created))
    expect(lastTakenMs).toBeLessThan(Date.parse(token.expires))
    expect(refusedMs).toBeGreaterThanOrEqual(Date.parse(token.expires))
    expect(Date.parse(token.expires) - Date.parse(token.created)).toBe(2000)
    expect(token.state).toBe('expired')
  })

  test('prints with --json the token and what is known of it, as token list does', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const { stdout, exitCode } = await create(database, '--json', '--scope', 'read', '--label', 'laptop')
    const { token, ...made } = JSON.parse(stdout)

    expect(exitCode).toBe(0)
    expect(token).toMatch(/^plst_[0-9A-Za-z]{49}$/)
    expect(made).toEqual({ id: 1, user: 'me', scope: 'read', label: 'laptop', created: made.created, expires: null })
    expect(await list(database)).toEqual([{ ...made, lastUsed: null, state: 'active' }])
  })

  test('says the absolute path of the database that it creates, and nothing where there is one', async () => {
    using folder = makeFolder()
    const createHere = () => runPlantstore(['token', 'create', '--user', 'me'], { cwd: folder.path })
    const [first, second] = [await createHere(), await createHere()]

    expect(first.stderr).toStartWith(`Created a new, empty store: ${join(folder.path, 'plantstore.db')}.\n`)
    expect(second.stderr).not.toContain('Created a new, empty store')
  })

  test('says that it created the database once, however many commands create it at once', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const answers = await Promise.all(Array.from({ length: 4 }, () => create(database)))

    expect(answers.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0])
    expect(answers.filter(({ stderr }) => stderr.includes('Created a new, empty store'))).toHaveLength(1)
  })

  test('can be what a shell puts into a variable', async () => {
    using folder = makeFolder()
    const { stdout } = await create(join(folder.path, 'plantstore.db'))
    // A shell takes off line ends alone; whatever else was printed would be part of the variable.
    const shell = Bun.spawn(['sh', '-c', 'TOKEN=$(cat); printf "%s" "$TOKEN"'], { stdin: new Blob([stdout]) })

    expect(await shell.stdout.text()).toBe(stdout.trim())
  })
})
