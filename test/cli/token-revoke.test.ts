import { describe, expect, test } from 'bun:test'
import { hashToken, TOKEN_RANDOM_BYTES, tokenText } from '../../src/domain/token.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { done, refusal, refusalWith } from './support/answers.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'
import { codesOf } from './support/service-client.ts'

const DISK_BYTES = 1024 ** 2

/** Makes a database have three tokens: the first and the third of user me, the second of user you. */
async function addTokens<Made extends ReturnType<typeof makeDatabase>>(made: Made, first: string) {
  const texts = [first, await createTokenIn(made.database, 'you'), await createTokenIn(made.database, 'me')] as const
  return {
    ...made,
    texts,
    revoke: (...args: readonly string[]) => made.run('token', 'revoke', ...args),
    /** Revokes the token with a text on stdin. */
    revokeText: (text: string) => made.feed(text, 'token', 'revoke', '-'),
    states: async () => (await made.tokens()).map(({ state }: { readonly state: string }) => state),
  }
}

async function makeTokens() {
  const made = makeDatabase()
  return addTokens(made, await createTokenIn(made.database))
}

const ACTIVE = ['active', 'active', 'active']

describe.concurrent('token revoke', () => {
  test.each<[string, readonly string[], (text: string) => string, string, readonly number[]]>([
    ['by its id', ['1'], () => '', 'Revoked token 1 of user me (write).', [40102, 200, 200]],
    ['by the user', ['--user', 'me', '--yes'], () => '', 'Revoked 2 tokens of user me.', [40102, 200, 40102]],
    ['by its text', ['-'], (text) => `  ${text}\r\n`, 'Revoked token 2 of user you (write).', [200, 40102, 200]],
  ])('makes a running server refuse a token from the next request on, %s', async (_, args, stdinOf, told, codes) => {
    await using service = await serveDatabase()
    const { texts, states, feed } = await addTokens(service, service.token)
    const before = await codesOf(service.server, texts)
    const revoked = await feed(stdinOf(texts[1]), 'token', 'revoke', ...args)

    expect(before).toEqual([200, 200, 200])
    expect(revoked).toEqual(done(told))
    expect(await codesOf(service.server, texts)).toEqual([...codes])
    expect(await states()).toEqual(codes.map((code) => (code === 200 ? 'active' : 'revoked')))
  })

  test('by user without --yes says how many it would revoke, exits with 2 and revokes none', async () => {
    using made = await makeTokens()
    await made.revoke('1')

    expect(await made.revoke('--user', 'me')).toEqual(
      refusal(2, 'This revokes all tokens of me that are not revoked yet, 1, for good: repeat it with --yes.'),
    )
    expect(await made.states()).toEqual(['revoked', 'active', 'active'])
  })

  test('says which token it revoked, with its label and when it would expire', async () => {
    using made = makeDatabase()
    const run = (...args: readonly string[]) => made.run('token', ...args)
    await run('create', '--user', 'me', '--scope', 'read', '--label', 'dash "1"', '--expires', '90d')
    const [{ expires }] = await made.tokens()

    const token = `token 1 of user me (read, "dash \\"1\\"", expires ${expires})`
    expect(await run('revoke', '1')).toEqual(done(`Revoked ${token}.`))
    await run('create', '--user', 'me')
    expect(await run('revoke', '--user', 'me', '--yes')).toEqual(done('Revoked 1 token of user me.'))
  })

  test('of what is revoked already exits with 0 and says so', async () => {
    using made = await makeTokens()
    await made.revoke('2')

    const already = done('Nothing to do: token 2 of user you (write) was already revoked.')
    expect(await made.revoke('2')).toEqual(already)
    expect(await made.revokeText(made.texts[1])).toEqual(already)
    expect(await made.revoke('--user', 'you', '--yes')).toEqual(done('User you has no token left to revoke.'))
  })

  test('says with --json how many were revoked', async () => {
    using made = await makeTokens()

    expect(await made.json('token', 'revoke', '--user', 'me', '--yes')).toEqual({ revoked: 2 })
    expect(await made.json('token', 'revoke', '1')).toEqual({ revoked: 0 })
    expect(await made.revoke('--user', 'you', '--json')).toMatchObject({ stdout: '', exitCode: 2 })
  })

  test('of an unknown id, user or text exits with 1 and revokes nothing', async () => {
    using made = await makeTokens()

    const noToken = refusal(1, 'There is no such token: plantstore token list shows all.')
    for (const id of ['4', '9007199254740993']) expect(await made.revoke(id)).toEqual(noToken)
    expect(await made.revokeText(tokenText(new Uint8Array(TOKEN_RANDOM_BYTES)))).toEqual(noToken)
    expect(await made.revoke('--user', 'nobody', '--yes')).toEqual(refusal(1, 'There is no user nobody.'))
    expect(await made.states()).toEqual(ACTIVE)
  })

  test('of what is no token on stdin, or of a token as an argument, exits with 2 and does not repeat it', async () => {
    using made = await makeTokens()
    const [text] = made.texts
    const misspelt = text.slice(0, -1) + (text.endsWith('0') ? '1' : '0')
    const answers = [
      await made.revoke(text),
      ...(await Promise.all([misspelt, '', hashToken(text).toHex()].map(made.revokeText))),
    ]

    expect(answers).toEqual(answers.map(() => refusalWith(2, '')))
    expect(JSON.stringify(answers)).not.toContain('plst_')
    expect(await made.states()).toEqual(ACTIVE)
  })

  test.skipIf(lacks(MOUNTS))('on a full disk is refused with exit code 3, and done once there is room', async () => {
    using disk = mountDisk(DISK_BYTES)
    await using service = await serveDatabase([], {}, disk.path)
    const { server, token, database } = service
    const revoke = () => service.run('token', 'revoke', '1')
    disk.fillUp()
    const refused = [await revoke(), await codesOf(server, [token])]
    await server.end()
    disk.makeRoom()
    disk.fillUp()
    const refusedAtRest = await revoke()
    disk.makeRoom()

    const full = refusal(3, 'The database is out of space or read-only and took no change: make room.')
    expect(refused).toEqual([full, [200]])
    expect(refusedAtRest).toEqual(refusal(3, `There is no space for the database ${database}: make room.`))
    expect(await revoke()).toEqual(done('Revoked token 1 of user me (write).'))
  })
})
