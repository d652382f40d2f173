import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { withStore } from '../../src/cli/with-store.ts'
import type { Store } from '../../src/domain/store.ts'
import { hashToken, TOKEN_RANDOM_BYTES, tokenText } from '../../src/domain/token.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { createToken, createTokenIn } from '../support/tokens.ts'

const DISK_BYTES = 1024 ** 2

/** A server with three tokens: the first and the third of user me, the second of user you. */
async function startWithTokens() {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const run = (args: readonly string[], stdin?: string) =>
    runPlantstore(['token', ...args, '--database', database], stdin === undefined ? {} : { stdin })
  const texts = await withStore({ database, databasePrepare: 'true' }, makeTokens, { mustExist: false })
  const server = await serve(database)
  const statuses = async () => {
    const answers: number[] = []
    for (const text of texts) {
      const answer = await server.request('GET', '/plants', { token: text })
      answers.push(answer.status)
    }
    return answers
  }
  return {
    texts,
    /** What the server answers to each token now. */
    statuses,
    revoke: (args: readonly string[], stdin?: string) => run(['revoke', ...args], stdin),
    states: async () =>
      JSON.parse((await run(['list', '--json'])).stdout).map(({ state }: { readonly state: string }) => state),
    async [Symbol.asyncDispose]() {
      await server.kill()
      folder[Symbol.dispose]()
    },
  }
}

async function makeTokens(store: Store): Promise<string[]> {
  const texts: string[] = []
  for (const user of ['me', 'you', 'me']) texts.push((await createToken(store, { user, scope: 'write' })).text)
  return texts
}

describe.concurrent('token revoke', () => {
  test('by id is effective on the next request to a running server', async () => {
    await using service = await startWithTokens()
    const before = await service.statuses()
    const revoked = await service.revoke(['1'])

    expect(before).toEqual([200, 200, 200])
    expect(revoked).toEqual({ stdout: '', stderr: 'Revoked token 1 of user me (write).\n', exitCode: 0 })
    expect(await service.statuses()).toEqual([401, 200, 200])
    expect(await service.states()).toEqual(['revoked', 'active', 'active'])
  })

  test('by user is effective on the next request to a running server', async () => {
    await using service = await startWithTokens()
    const before = await service.statuses()
    const revoked = await service.revoke(['--user', 'me', '--yes'])

    expect(before).toEqual([200, 200, 200])
    expect(revoked).toEqual({ stdout: '', stderr: 'Revoked 2 tokens of user me.\n', exitCode: 0 })
    expect(await service.statuses()).toEqual([401, 200, 401])
  })

  test('by user without --yes says how many it would revoke, exits with 2 and revokes none', async () => {
    await using service = await startWithTokens()
    await service.revoke(['1'])
    const refused = await service.revoke(['--user', 'me'])

    expect(refused).toEqual({
      stdout: '',
      stderr:
        'plantstore: This revokes all tokens of me that are not revoked yet, 1, for good: repeat it with --yes.\n',
      exitCode: 2,
    })
    expect(await service.states()).toEqual(['revoked', 'active', 'active'])
  })

  test.each([
    ['as it is', (text: string) => text],
    ['with white space around', (text: string) => `  ${text}\r\n`],
  ])('by the text on stdin, %s, is effective on the next request to a running server', async (_, around) => {
    await using service = await startWithTokens()
    const before = await service.statuses()
    const revoked = await service.revoke(['-'], around(service.texts[1] ?? ''))

    expect(before).toEqual([200, 200, 200])
    expect(revoked).toEqual({ stdout: '', stderr: 'Revoked token 2 of user you (write).\n', exitCode: 0 })
    expect(await service.statuses()).toEqual([200, 401, 200])
  })

  test('says which token it revoked, with its label and when it would expire', async () => {
    using folder = makeFolder()
    const run = (...args: readonly string[]) => runPlantstore(['token', ...args], { cwd: folder.path })
    const created = await run('create', '--user', 'me', '--scope', 'read', '--label', 'dash "1"', '--expires', '90d')
    const [{ expires }] = JSON.parse((await run('list', '--json')).stdout)
    const revoked = await run('revoke', '1')
    await run('create', '--user', 'me')
    const all = await run('revoke', '--user', 'me', '--yes')

    const token = `token 1 of user me (read, "dash \\"1\\"", expires ${expires})`
    expect([created, revoked, all].map(({ stderr }) => stderr)).toEqual([
      `Created a new, empty store: ${join(folder.path, 'plantstore.db')}.\nCreated user me.\nCreated ${token}. It is shown only once.\n`,
      `Revoked ${token}.\n`,
      'Revoked 1 token of user me.\n',
    ])
  })

  test('of what is revoked already exits with 0 and says so', async () => {
    await using service = await startWithTokens()
    await service.revoke(['2'])
    const answers = await Promise.all([
      service.revoke(['2']),
      service.revoke(['--user', 'you', '--yes']),
      service.revoke(['-'], service.texts[1]),
    ])

    const told = (stderr: string) => ({ stdout: '', stderr, exitCode: 0 })
    const already = told('Nothing to do: token 2 of user you (write) was already revoked.\n')
    expect(answers).toEqual([already, told('User you has no token left to revoke.\n'), already])
  })

  test('says with --json how many were revoked', async () => {
    await using service = await startWithTokens()
    const revoked = await service.revoke(['--user', 'me', '--yes', '--json'])
    const again = await service.revoke(['1', '--json'])
    const unconfirmed = await service.revoke(['--user', 'you', '--json'])

    expect([revoked, again].map(({ stdout, exitCode }) => [JSON.parse(stdout), exitCode])).toEqual([
      [{ revoked: 2 }, 0],
      [{ revoked: 0 }, 0],
    ])
    expect(unconfirmed).toMatchObject({ stdout: '', exitCode: 2 })
  })

  test('of an unknown id, user or text exits with 1 and revokes nothing', async () => {
    await using service = await startWithTokens()
    const unknown = tokenText(new Uint8Array(TOKEN_RANDOM_BYTES))
    const answers = await Promise.all([
      service.revoke(['4']),
      service.revoke(['9007199254740993']),
      service.revoke(['--user', 'nobody', '--yes']),
      service.revoke(['-'], unknown),
    ])

    expect(answers).toEqual([
      { stdout: '', stderr: 'plantstore: There is no such token: plantstore token list shows all.\n', exitCode: 1 },
      { stdout: '', stderr: 'plantstore: There is no such token: plantstore token list shows all.\n', exitCode: 1 },
      { stdout: '', stderr: 'plantstore: There is no user nobody.\n', exitCode: 1 },
      { stdout: '', stderr: 'plantstore: There is no such token: plantstore token list shows all.\n', exitCode: 1 },
    ])
    expect(await service.states()).toEqual(['active', 'active', 'active'])
  })

  test('of what is no token on stdin, or of a token as an argument, exits with 2 and does not repeat it', async () => {
    await using service = await startWithTokens()
    const [text = ''] = service.texts
    const misspelt = text.slice(0, -1) + (text.endsWith('0') ? '1' : '0')
    const answers = await Promise.all([
      service.revoke(['-'], misspelt),
      service.revoke(['-'], ''),
      service.revoke(['-'], hashToken(text).toHex()),
      service.revoke([text]),
    ])

    for (const { stdout, stderr, exitCode } of answers) {
      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
      expect(stderr).toMatch(/^plantstore: [^\n]+\n$/)
      expect(stderr).not.toContain('plst_')
    }
    expect(await service.states()).toEqual(['active', 'active', 'active'])
  })

  test.skipIf(lacks(MOUNTS))('on a full disk is refused, and done once there is room', async () => {
    using disk = mountDisk(DISK_BYTES)
    const database = join(disk.path, 'plantstore.db')
    const token = await createTokenIn(database)
    const revoke = () => runPlantstore(['token', 'revoke', '1', '--database', database])
    const full = {
      stdout: '',
      stderr: 'plantstore: The database is out of space or read-only, nothing was changed: make room.\n',
      exitCode: 3,
    }
    await using server = await serve(database)
    const list = async () => (await server.request('GET', '/plants', { token })).status
    disk.fillUp()
    const refused = [await revoke(), await list()]
    await server.end()
    disk.makeRoom()
    disk.fillUp()
    const refusedAtRest = await revoke()
    disk.makeRoom()
    const revoked = await revoke()
    await using again = await serve(database)

    expect(refused).toEqual([full, 200])
    expect(refusedAtRest).toEqual({
      stdout: '',
      stderr: `plantstore: There is no space for the database ${database}: make room.\n`,
      exitCode: 3,
    })
    expect(revoked).toEqual({ stdout: '', stderr: 'Revoked token 1 of user me (write).\n', exitCode: 0 })
    expect((await again.request('GET', '/plants', { token })).status).toBe(401)
  })
})
