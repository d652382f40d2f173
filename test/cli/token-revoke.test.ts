import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { hashToken, TOKEN_RANDOM_BYTES, tokenText } from '../../src/domain/token.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { done, refusal, refusalWith } from './support/answers.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

const DISK_BYTES = 1024 ** 2

/** A server with three tokens: the first and the third of user me, the second of user you. */
async function startWithTokens() {
  const service = await serveDatabase()
  const { server, database, run, token } = service
  const texts = [token, await createTokenIn(database, 'you'), await createTokenIn(database, 'me')]
  return {
    ...service,
    texts,
    /** What the server answers to each token now. */
    async statuses() {
      const answers: number[] = []
      for (const text of texts) answers.push((await server.request('GET', '/plants', { token: text })).status)
      return answers
    },
    revoke: (args: readonly string[], stdin?: string) =>
      runPlantstore(['token', 'revoke', ...args, '--database', database], stdin === undefined ? {} : { stdin }),
    states: async () =>
      JSON.parse((await run('token', 'list', '--json')).stdout).map(({ state }: { readonly state: string }) => state),
  }
}

describe.concurrent('token revoke', () => {
  test.each<[string, readonly string[], (text: string) => string | undefined, string, readonly number[]]>([
    ['by its id', ['1'], () => undefined, 'Revoked token 1 of user me (write).', [401, 200, 200]],
    ['by the user', ['--user', 'me', '--yes'], () => undefined, 'Revoked 2 tokens of user me.', [401, 200, 401]],
    ['by its text', ['-'], (text) => `  ${text}\r\n`, 'Revoked token 2 of user you (write).', [200, 401, 200]],
  ])('makes a running server refuse a token from the next request on, %s', async (_, args, stdinOf, told, statuses) => {
    await using service = await startWithTokens()
    const before = await service.statuses()
    const revoked = await service.revoke(args, stdinOf(service.texts[1] ?? ''))

    expect(before).toEqual([200, 200, 200])
    expect(revoked).toEqual(done(told))
    expect(await service.statuses()).toEqual([...statuses])
    expect(await service.states()).toEqual(statuses.map((status) => (status === 401 ? 'revoked' : 'active')))
  })

  test('by user without --yes says how many it would revoke, exits with 2 and revokes none', async () => {
    await using service = await startWithTokens()
    await service.revoke(['1'])
    const refused = await service.revoke(['--user', 'me'])

    expect(refused).toEqual(
      refusal(2, 'This revokes all tokens of me that are not revoked yet, 1, for good: repeat it with --yes.'),
    )
    expect(await service.states()).toEqual(['revoked', 'active', 'active'])
  })

  test('says which token it revoked, with its label and when it would expire', async () => {
    using made = makeDatabase()
    const run = (...args: readonly string[]) => made.run('token', ...args)
    const created = await run('create', '--user', 'me', '--scope', 'read', '--label', 'dash "1"', '--expires', '90d')
    const [{ expires }] = JSON.parse((await run('list', '--json')).stdout)
    const revoked = await run('revoke', '1')
    await run('create', '--user', 'me')
    const all = await run('revoke', '--user', 'me', '--yes')

    const token = `token 1 of user me (read, "dash \\"1\\"", expires ${expires})`
    expect([created, revoked, all].map(({ stderr }) => stderr)).toEqual([
      `Created a new, empty store: ${made.database}.\nCreated user me.\nCreated ${token}. It is shown only once.\n`,
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

    const already = done('Nothing to do: token 2 of user you (write) was already revoked.')
    expect(answers).toEqual([already, done('User you has no token left to revoke.'), already])
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
    const argumentLists = [['4'], ['9007199254740993'], ['--user', 'nobody', '--yes'], ['-']]
    const answers = await Promise.all(argumentLists.map((args) => service.revoke(args, unknown)))

    const noToken = refusal(1, 'There is no such token: plantstore token list shows all.')
    expect(answers).toEqual([noToken, noToken, refusal(1, 'There is no user nobody.'), noToken])
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

    for (const answer of answers) {
      expect(answer).toEqual(refusalWith(2, ''))
      expect(answer.stderr).not.toContain('plst_')
    }
    expect(await service.states()).toEqual(['active', 'active', 'active'])
  })

  test.skipIf(lacks(MOUNTS))('on a full disk is refused, and done once there is room', async () => {
    using disk = mountDisk(DISK_BYTES)
    const database = join(disk.path, 'plantstore.db')
    const token = await createTokenIn(database)
    const revoke = () => runPlantstore(['token', 'revoke', '1', '--database', database])
    const full = refusal(3, 'The database is out of space or read-only and took no change: make room.')
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
    expect(refusedAtRest).toEqual(refusal(3, `There is no space for the database ${database}: make room.`))
    expect(revoked).toEqual(done('Revoked token 1 of user me (write).'))
    expect((await again.request('GET', '/plants', { token })).status).toBe(401)
  })
})
