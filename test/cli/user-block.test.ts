import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { done, refusal } from './support/answers.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'
import { codeOf } from './support/service-client.ts'

const DISK_BYTES = 1024 ** 2

/** A server with two tokens of user me and one of user you, all of which it has seen. */
async function startWithTokens() {
  const service = await serveDatabase()
  const { server, database, token } = service
  const texts = [token, await createTokenIn(database), await createTokenIn(database, 'you')]
  const codes = async () => {
    const answers: number[] = []
    for (const text of texts) answers.push(await codeOf(server, text))
    return answers
  }
  expect(await codes()).toEqual([200, 200, 200])
  return { ...service, codes }
}

const BLOCKED = done('Blocked user me.')

describe.concurrent('user block', () => {
  test('makes a running server refuse all tokens of the user from the next request on, until user unblock', async () => {
    await using service = await startWithTokens()
    const { run, codes } = service

    expect(await run('user', 'block', 'me')).toEqual(BLOCKED)
    expect(await codes()).toEqual([40102, 40102, 200])
    expect(await run('user', 'unblock', 'me')).toEqual(done('Unblocked user me.'))
    expect(await codes()).toEqual([200, 200, 200])
  })

  test('refuses a token that is made later, which token list shows as blocked', async () => {
    await using service = await startWithTokens()
    const { run, database, server } = service
    await run('user', 'block', 'me')
    const later = await createTokenIn(database, 'me')
    const code = await codeOf(server, later)
    const { stdout } = await run('token', 'list', '--json')

    expect(code).toBe(40102)
    expect(JSON.parse(stdout).map(({ state }: { readonly state: string }) => state)).toEqual([
      ...['blocked', 'blocked', 'active', 'blocked'],
    ])
  })

  test('of a blocked user, and user unblock of another, exit with 0 and say that there is nothing to do', async () => {
    using made = makeDatabase()
    await createTokenIn(made.database)
    const idle = await made.run('user', 'unblock', 'me')
    const first = await made.run('user', 'block', 'me')
    const before = await made.run('user', 'list', '--json')
    const again = await made.run('user', 'block', 'me')

    expect([idle, first, again]).toEqual([
      done('Nothing to do: user me is not blocked.'),
      BLOCKED,
      done('Nothing to do: user me is already blocked.'),
    ])
    expect(await made.run('user', 'list', '--json')).toEqual(before)
  })

  test('and user unblock print with --json the new state', async () => {
    using made = makeDatabase()
    await createTokenIn(made.database)
    const answers = [await made.run('user', 'block', 'me', '--json'), await made.run('user', 'unblock', 'me', '--json')]

    expect(answers.map(({ stdout }) => JSON.parse(stdout))).toEqual([
      { user: 'me', blocked: true },
      { user: 'me', blocked: false },
    ])
  })

  test('and user unblock exit with 1 for a user who does not exist, and create none', async () => {
    using made = makeDatabase()
    await createTokenIn(made.database)
    const before = await made.run('user', 'list', '--json')

    for (const command of ['block', 'unblock']) {
      expect(await made.run('user', command, 'mee')).toEqual(refusal(1, 'There is no user mee.'))
    }
    expect(await made.run('user', 'list', '--json')).toEqual(before)
  })

  test.skipIf(lacks(MOUNTS))('on a full disk exits with 3, and blocks once there is room', async () => {
    using disk = mountDisk(DISK_BYTES)
    const database = join(disk.path, 'plantstore.db')
    const token = await createTokenIn(database)
    await using server = await serve(database)
    const block = () => runPlantstore(['user', 'block', 'me', '--database', database])
    disk.fillUp()
    const full = await block()
    const whileFull = await codeOf(server, token)
    disk.makeRoom()
    const blocked = await block()

    expect(full).toEqual(refusal(3, 'The database is out of space or read-only and took no change: make room.'))
    expect(whileFull).toBe(200)
    expect(blocked).toEqual(BLOCKED)
    expect(await codeOf(server, token)).toBe(40102)
  })
})
