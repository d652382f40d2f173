import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { runSql } from '../store/sqlite/files.ts'
import { createTokenIn } from '../support/tokens.ts'
import { cellsOf, refusal, refusalWith } from './support/answers.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'
import { codesOf } from './support/service-client.ts'

const DAY_MS = 86_400_000
const TEXT = /^plst_[0-9A-Za-z]{49}\n$/

const lifetimeMs = ({ created, expires }: { readonly created: string; readonly expires: string }) =>
  Date.parse(expires) - Date.parse(created)

/** A database with a token of user me, which expires after this time. */
async function makeToken(lifetime = '90d') {
  const made = makeDatabase()
  const args = ['--user', 'me', '--scope', 'read', '--label', 'dash', '--expires', lifetime]
  const { stdout } = await made.run('token', 'create', ...args)
  const rotate = (...flags: readonly string[]) => made.run('token', 'rotate', ...flags)
  return { ...made, text: stdout.trim(), rotate }
}

describe.concurrent('token rotate', () => {
  test('prints only the new token on stdout, and the end of the old one on stderr, by default in a day', async () => {
    using made = await makeToken()
    const beforeMs = Date.now()
    const answer = await made.rotate('1')
    const [old, next] = await made.tokens()

    expect(answer).toEqual({
      stdout: expect.stringMatching(TEXT),
      stderr: `Token 1 is valid until ${old.expires}.
Created token 2 of user me (read, "dash", expires ${next.expires}). It is shown only once.\n`,
      exitCode: 0,
    })
    expect(Date.parse(old.expires)).toBeWithin(beforeMs + DAY_MS, Date.now() + DAY_MS)
  })

  test('gives the new token the user, scope, label and lifetime of the old one, and token list shows both', async () => {
    using made = await makeToken()
    const [before] = await made.tokens()
    await made.rotate('1', '--overlap', '2h')
    const [old, next] = await made.tokens()
    const { stdout: table } = await made.run('token', 'list')

    expect(old).toEqual({ ...before, expires: old.expires, replacedBy: 2 })
    expect(next).toEqual({ ...before, id: 2, created: next.created, expires: next.expires, replacedBy: null })
    expect(lifetimeMs(next)).toBe(90 * DAY_MS)
    expect(Date.parse(old.expires) - Date.parse(next.created)).toBe(DAY_MS / 12)
    expect(cellsOf(table).map((row) => [row[0], row[5], row.at(-1)])).toEqual([
      ['id', 'expires', 'replaced by'],
      ['1', old.expires, '2'],
      ['2', next.expires, '-'],
    ])
  })

  test('prints with --json the token, the fields that token list prints, and what it replaces until when', async () => {
    using made = await makeToken()
    const { token, replaces, oldEnds, ...fields } = await made.json('token', 'rotate', '1', '--expires', '30d')
    const [old, next] = await made.tokens()

    expect(`${token}\n`).toMatch(TEXT)
    expect({ replaces, oldEnds }).toEqual({ replaces: 1, oldEnds: old.expires })
    expect(next).toEqual({ ...fields, lastUsed: null, state: 'active', replacedBy: null })
    expect(lifetimeMs(next)).toBe(30 * DAY_MS)
  })

  test('of a token that never expires makes one that never expires', async () => {
    using made = makeDatabase()
    await createTokenIn(made.database)
    await made.run('token', 'rotate', '1')

    expect(await made.tokens()).toMatchObject([{ expires: expect.any(String) }, { expires: null }])
  })

  test('makes a running server accept both tokens, and with --overlap 0 only the new one, from the next request on', async () => {
    await using service = await serveDatabase()
    const { run, server, token } = service
    expect(await codesOf(server, [token])).toEqual([200])

    const second = (await run('token', 'rotate', '1')).stdout.trim()
    const during = await codesOf(server, [token, second])
    const { stdout, stderr } = await run('token', 'rotate', '2', '--overlap', '0')

    expect(during).toEqual([200, 200])
    expect(stderr).toStartWith('Token 2 is revoked.\nCreated token 3 of user me (write).')
    expect(await codesOf(server, [token, second, stdout.trim()])).toEqual([200, 40102, 200])
  })

  test('finds the old token by its text on stdin', async () => {
    using made = await makeToken()

    expect((await made.feed(`${made.text}\n`, 'token', 'rotate', '-')).stderr).toStartWith('Token 1 is valid until ')
    expect(await made.feed('plst_0\n', 'token', 'rotate', '-')).toEqual(refusal(2, 'The text on stdin is not a token.'))
  })

  test('of a token that is unknown or cannot be replaced exits with 1, and says why', async () => {
    using made = await makeToken()
    await made.run('token', 'revoke', '1')

    expect(await made.rotate('1')).toEqual(refusal(1, 'Token 1 is revoked: create a new one.'))
    expect(await made.rotate('2')).toEqual(refusal(1, 'There is no such token: plantstore token list shows all.'))
  })

  test('with wrong options exits with 2 and changes nothing', async () => {
    using made = await makeToken()
    const before = await made.tokens()
    const short = 'The new token would expire before the old one: make --expires longer or --overlap shorter.'

    expect(await made.rotate('1', '--expires', '24h')).toEqual(refusal(2, short))
    expect(await made.rotate('1', '--expires', '1h', '--overlap', '1h')).toEqual(refusal(2, short))
    expect(await made.rotate('1', '--overlap', '1')).toEqual(refusalWith(2, '--overlap must be a whole number'))
    expect(await made.rotate('one')).toEqual(refusalWith(2, 'The id of a token'))
    expect(await made.tokens()).toEqual(before)
  })

  test.each([
    [-9e15, 'The times of token 1 give no lifetime for the new one: say --expires.'],
    [9e15, 'The new token would expire before the old one: make --expires longer or --overlap shorter.'],
  ])('of a token that another program says was created at %d ms needs --expires', async (createdAtMs, message) => {
    using made = await makeToken()
    runSql(made.database, `update tokens set created_at_ms = ${createdAtMs}`)

    expect(await made.rotate('1')).toEqual(refusal(2, message))
    expect(await made.rotate('1', '--expires', '90d')).toMatchObject({ stderr: expect.stringContaining('token 2') })
  })

  test('takes a lifetime that is shorter than the overlap, but longer than the rest of the old token', async () => {
    using made = await makeToken('1h')
    const { exitCode } = await made.rotate('1', '--expires', '2h')

    expect(exitCode).toBe(0)
    expect((await made.tokens()).map(lifetimeMs)).toEqual([3_600_000, 7_200_000])
  })

  test('leaves nothing in a token that is deleted with its user, and survives a backup and its restore', async () => {
    using made = await makeToken()
    await made.rotate('1')
    const before = await made.tokens()
    const backup = join(made.folder, 'backup.db')
    await made.run('backup', backup)
    const deleted = await made.run('user', 'delete', 'me', '--yes')
    await made.run('restore', backup, '--force')

    expect(deleted.stderr).toEndWith('Deleted user me with 2 tokens and 0 plants.\n')
    expect(await made.tokens()).toEqual(before)
    expect(before).toMatchObject([{ replacedBy: 2 }, { replacedBy: null }])
  })
})
