import { describe, expect, test } from 'bun:test'
import { createTokenIn } from '../support/tokens.ts'
import { done, refusal } from './support/answers.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'
import { codesOf } from './support/service-client.ts'

const BLOCKED = done('Blocked user me.')

/** A database with a token of user me. */
async function makeUser() {
  const made = makeDatabase()
  await createTokenIn(made.database)
  const user = (...args: readonly string[]) => made.run('user', ...args)
  return { ...made, user }
}

describe.concurrent('user block', () => {
  test('makes a running server refuse all tokens of the user from the next request on, until user unblock', async () => {
    await using service = await serveDatabase()
    const { run, server, database, token } = service
    const texts = [token, await createTokenIn(database), await createTokenIn(database, 'you')]
    const before = await codesOf(server, texts)

    expect(before).toEqual([200, 200, 200])
    expect(await run('user', 'block', 'me')).toEqual(BLOCKED)
    expect(await codesOf(server, texts)).toEqual([40102, 40102, 200])
    expect(await run('user', 'unblock', 'me')).toEqual(done('Unblocked user me.'))
    expect(await codesOf(server, texts)).toEqual([200, 200, 200])
  })

  test('refuses a token that is made later, which token list shows as blocked', async () => {
    await using service = await serveDatabase()
    await service.run('user', 'block', 'me')
    const later = await createTokenIn(service.database, 'me')

    expect(await codesOf(service.server, [later])).toEqual([40102])
    expect(await service.tokens()).toMatchObject([{ state: 'blocked' }, { state: 'blocked' }])
  })

  test('of a blocked user, and user unblock of another, exit with 0 and say that there is nothing to do', async () => {
    using made = await makeUser()

    expect(await made.user('unblock', 'me')).toEqual(done('Nothing to do: user me is not blocked.'))
    expect(await made.user('block', 'me')).toEqual(BLOCKED)
    const before = await made.json('user', 'list')
    expect(await made.user('block', 'me')).toEqual(done('Nothing to do: user me is already blocked.'))
    expect(await made.json('user', 'list')).toEqual(before)
  })

  test('and user unblock print with --json the new state', async () => {
    using made = await makeUser()

    expect(await made.json('user', 'block', 'me')).toEqual({ user: 'me', blocked: true })
    expect(await made.json('user', 'unblock', 'me')).toEqual({ user: 'me', blocked: false })
  })

  test('and user unblock exit with 1 for a user who does not exist', async () => {
    using made = await makeUser()

    for (const command of ['block', 'unblock']) {
      expect(await made.user(command, 'mee')).toEqual(refusal(1, 'There is no user mee.'))
    }
  })
})
