import { describe, expect, test } from 'bun:test'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { done, refusal } from './support/answers.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'
import { codesOf } from './support/service-client.ts'

const DISK_BYTES = 1024 ** 2

/** A server with three tokens: the first and the third of user me, the second of user you. */
async function serveTokens() {
  const service = await serveDatabase()
  const { token, database, server } = service
  const texts = [token, await createTokenIn(database, 'you'), await createTokenIn(database, 'me')] as const
  expect(await codesOf(server, texts)).toEqual([200, 200, 200])
  return { ...service, texts, codes: () => codesOf(server, texts) }
}

// The transcripts show what these commands print.
describe.concurrent('from the next request on, a running server', () => {
  test.each<[string, readonly string[], (text: string) => string, readonly number[]]>([
    ['by its id', ['1'], () => '', [40102, 200, 200]],
    ['by the user', ['--user', 'me', '--yes'], () => '', [40102, 200, 40102]],
    ['by its text', ['-'], (text) => text, [200, 40102, 200]],
  ])('refuses a token that is revoked %s', async (_, args, stdinOf, codes) => {
    await using service = await serveTokens()
    await service.feed(stdinOf(service.texts[1]), 'token', 'revoke', ...args)

    expect(await service.codes()).toEqual([...codes])
  })

  test('accepts both tokens of a rotation, and with --overlap 0 only the new one', async () => {
    await using service = await serveTokens()
    const { run, server, texts } = service
    const second = (await run('token', 'rotate', '1')).stdout.trim()
    const during = await codesOf(server, [texts[0], second])
    const third = (await run('token', 'rotate', '4', '--overlap', '0')).stdout.trim()

    expect(during).toEqual([200, 200])
    expect(await codesOf(server, [texts[0], second, third])).toEqual([200, 40102, 200])
  })

  test('refuses all tokens of a blocked user, later ones included, until user unblock', async () => {
    await using service = await serveTokens()
    const { run, server, database, codes } = service
    await run('user', 'block', 'me')
    const later = await createTokenIn(database, 'me')

    expect([...(await codes()), ...(await codesOf(server, [later]))]).toEqual([40102, 200, 40102, 40102])
    await run('user', 'unblock', 'me')
    expect([...(await codes()), ...(await codesOf(server, [later]))]).toEqual([200, 200, 200, 200])
  })
})

test('token create says once that it created the database, however many commands create it at the same time', async () => {
  using made = makeDatabase()
  const answers = await Promise.all([1, 2, 3, 4].map(() => made.run('token', 'create', '--user', 'me')))

  expect(answers.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0])
  expect(answers.filter(({ stderr }) => stderr.includes('Created a new, empty store'))).toHaveLength(1)
})

test.skipIf(lacks(MOUNTS))(
  'token revoke is refused with exit code 3 on a full disk, and done once there is room',
  async () => {
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
  },
)
