import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openStore } from '../../src/store/open.ts'
import { runSql } from '../store/sqlite/files.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { lacks } from '../support/requirement.ts'
import { createToken, createTokenIn } from '../support/tokens.ts'
import { done, refusal, refusalWith } from './support/answers.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

const DISK_BYTES = 1024 ** 2
const DAY_MS = 86_400_000
const TEXT = /^plst_[0-9A-Za-z]{49}\n$/

type Run = ReturnType<typeof makeDatabase>['run']
const list = async (run: Run) => JSON.parse((await run('token', 'list', '--json')).stdout)

/** A database with a token of user me, which expires after this time. */
async function makeToken(lifetime = '90d') {
  const made = makeDatabase()
  const args = ['--user', 'me', '--scope', 'read', '--label', 'dash', '--expires', lifetime]
  const { stdout } = await made.run('token', 'create', ...args)
  const rotate = (...flags: readonly string[]) => made.run('token', 'rotate', ...flags)
  return { ...made, text: stdout.trim(), rotate }
}

describe.concurrent('token rotate', () => {
  test('prints only the new token on stdout, and the end of the old one on stderr', async () => {
    using made = await makeToken()
    const beforeMs = Date.now()
    const { stdout, stderr, exitCode } = await made.rotate('1')
    const [old, next] = await list(made.run)

    expect(stdout).toMatch(TEXT)
    expect(stderr).toBe(
      `Token 1 is valid until ${old.expires}.
Created token 2 of user me (read, "dash", expires ${next.expires}). It is shown only once.\n`,
    )
    expect(exitCode).toBe(0)
    expect(Date.parse(old.expires)).toBeWithin(beforeMs + DAY_MS, Date.now() + DAY_MS)
  })

  test('gives the new token the user, scope, label and lifetime of the old one, and token list shows both', async () => {
    using made = await makeToken()
    const [before] = await list(made.run)
    await made.rotate('1', '--overlap', '2h')
    const [old, next] = await list(made.run)
    const { stdout: table } = await made.run('token', 'list')

    expect(old).toEqual({ ...before, expires: old.expires, replacedBy: 2 })
    expect(next).toEqual({ ...before, id: 2, created: next.created, expires: next.expires, replacedBy: null })
    const lifetimeMs = (token: { readonly created: string; readonly expires: string }) =>
      Date.parse(token.expires) - Date.parse(token.created)
    expect(lifetimeMs(next)).toBe(90 * DAY_MS)
    expect(Date.parse(old.expires) - Date.parse(next.created)).toBe(DAY_MS / 12)
    const rows = table.split('\n').map((line) => line.split(/ {2,}/))
    expect(rows.map((row) => [row[0], row[5], row.at(-1)]).slice(0, 3)).toEqual([
      ['id', 'expires', 'replaced by'],
      ['1', old.expires, '2'],
      ['2', next.expires, '-'],
    ])
  })

  test('prints with --json the token, the fields that token list prints, and what it replaces until when', async () => {
    using made = await makeToken()
    const { stdout } = await made.rotate('1', '--json', '--expires', '30d')
    const [old, next] = await list(made.run)
    const { token, replaces, oldEnds, ...fields } = JSON.parse(stdout)

    expect(`${token}\n`).toMatch(TEXT)
    expect({ replaces, oldEnds }).toEqual({ replaces: 1, oldEnds: old.expires })
    expect(next).toEqual({ ...fields, lastUsed: null, state: 'active', replacedBy: null })
    expect(Date.parse(next.expires) - Date.parse(next.created)).toBe(30 * DAY_MS)
  })

  test('of a token that never expires makes one that never expires', async () => {
    using made = makeDatabase()
    await createTokenIn(made.database)
    await made.run('token', 'rotate', '1')

    expect((await list(made.run)).map(({ expires }: { readonly expires: string | null }) => expires)).toEqual([
      ...[expect.any(String), null],
    ])
  })

  test('makes a running server accept both tokens, and with --overlap 0 only the new one, from the next request on', async () => {
    await using service = await serveDatabase()
    const { run, server, token } = service
    const statusOf = async (text: string) => (await server.request('GET', '/plants', { token: text })).status
    expect(await statusOf(token)).toBe(200)

    const second = (await run('token', 'rotate', '1')).stdout.trim()
    const during = [await statusOf(token), await statusOf(second)]
    const { stdout, stderr } = await run('token', 'rotate', '2', '--overlap', '0')
    const after = [await statusOf(token), await statusOf(second), await statusOf(stdout.trim())]

    expect(during).toEqual([200, 200])
    expect(stderr).toStartWith('Token 2 is revoked.\nCreated token 3 of user me (write).')
    expect(after).toEqual([200, 401, 200])
    expect(await list(run)).toMatchObject([
      { state: 'active', replacedBy: 2 },
      { state: 'revoked', replacedBy: 3 },
      { state: 'active', replacedBy: null },
    ])
  })

  test('finds the old token by its text on stdin', async () => {
    using made = await makeToken()
    const rotate = (stdin: string) =>
      runPlantstore(['token', 'rotate', '-', '--database', made.database], { stdin: `${stdin}\n` })

    expect((await rotate(made.text)).stderr).toStartWith('Token 1 is valid until ')
    expect(await rotate('plst_0')).toEqual(refusal(2, 'The text on stdin is not a token.'))
  })

  test('of a token that is unknown or cannot be replaced exits with 1 and changes nothing', async () => {
    using made = await makeToken()
    await made.rotate('1')
    const before = await list(made.run)

    expect(await made.rotate('1')).toEqual(
      refusal(
        1,
        'Token 2 replaces token 1 already: run plantstore token revoke 1 to end token 1 at once, or rotate token 2.',
      ),
    )
    expect(await made.rotate('3')).toEqual(refusal(1, 'There is no such token: plantstore token list shows all.'))
    expect(await list(made.run)).toEqual(before)
  })

  test('of a revoked or an expired token exits with 1 and changes nothing', async () => {
    using made = await makeToken()
    const store = await openStore(made.database, () => {})
    const { id } = await createToken(store, { expiresAtMs: Date.now() - 1 })
    await store.close()
    await made.run('token', 'revoke', '1')
    const before = await list(made.run)

    expect(await made.rotate('1')).toEqual(refusal(1, 'Token 1 is revoked: create a new one.'))
    expect(await made.rotate(String(id))).toEqual(refusal(1, `Token ${id} is expired: create a new one.`))
    expect(await list(made.run)).toEqual(before)
  })

  test('with wrong options exits with 2 and changes nothing', async () => {
    using made = await makeToken()
    const before = await list(made.run)
    const short = 'The new token would expire before the old one: make --expires longer or --overlap shorter.'

    expect(await made.rotate('1', '--expires', '24h')).toEqual(refusal(2, short))
    expect(await made.rotate('1', '--expires', '1h', '--overlap', '1h')).toEqual(refusal(2, short))
    expect(await made.rotate('1', '--overlap', '1')).toEqual(refusalWith(2, '--overlap must be a whole number'))
    expect(await made.rotate('1', '--overlap', '-1h')).toMatchObject({ exitCode: 2 })
    expect(await made.rotate('one')).toEqual(refusalWith(2, 'The id of a token'))
    expect(await list(made.run)).toEqual(before)
  })

  test.each([
    [-9e15, 'The times of token 1 give no lifetime for the new one: say --expires.'],
    [9e15, 'The new token would expire before the old one: make --expires longer or --overlap shorter.'],
  ])('of a token that another program says was created at %d ms needs --expires', async (createdAtMs, message) => {
    using made = await makeToken()
    runSql(made.database, `update tokens set created_at_ms = ${createdAtMs}`)

    expect(await made.rotate('1')).toEqual(refusal(2, message))
    expect(await made.rotate('1', '--expires', '90d')).toMatchObject({ stderr: expect.stringContaining('token 2') })
    expect(await list(made.run)).toMatchObject([{ replacedBy: 2 }, { state: 'active' }])
  })

  test('takes a lifetime that is shorter than the overlap, but longer than the rest of the old token', async () => {
    using made = await makeToken('1h')
    const { exitCode } = await made.rotate('1', '--expires', '2h')
    const [old, successor] = await list(made.run)

    expect(exitCode).toBe(0)
    expect(Date.parse(old.expires) - Date.parse(old.created)).toBe(3_600_000)
    expect(Date.parse(successor.expires) - Date.parse(successor.created)).toBe(7_200_000)
  })

  test('leaves nothing in a token that is deleted with its user, and survives a backup and its restore', async () => {
    using made = await makeToken()
    await made.rotate('1')
    const before = await list(made.run)
    const backup = join(made.folder, 'backup.db')
    await made.run('backup', backup)
    const deleted = await made.run('user', 'delete', 'me', '--yes')
    await made.run('restore', backup, '--force')

    expect(deleted.stderr).toEndWith('Deleted user me with 2 tokens and 0 plants.\n')
    expect(await list(made.run)).toEqual(before)
    expect(before).toMatchObject([{ replacedBy: 2 }, { replacedBy: null }])
  })

  test.skipIf(lacks(MOUNTS))('on a full disk exits with 3, prints no token, and works once there is room', async () => {
    using disk = mountDisk(DISK_BYTES)
    const database = join(disk.path, 'plantstore.db')
    const token = await createTokenIn(database)
    await using server = await serve(database)
    const rotate = () => runPlantstore(['token', 'rotate', '1', '--database', database])
    disk.fillUp()
    const full = await rotate()
    const whileFull = (await server.request('GET', '/plants', { token })).status
    disk.makeRoom()
    const { stdout, exitCode } = await rotate()

    expect(full).toEqual(refusal(3, 'The database is out of space or read-only and took no change: make room.'))
    expect([whileFull, exitCode]).toEqual([200, 0])
    expect((await server.request('GET', '/plants', { token: stdout.trim() })).status).toBe(200)
  })

  test('can be repeated with the new token, if the new token was lost', async () => {
    using made = await makeToken()
    await made.rotate('1', '--overlap', '1h')
    const { stdout } = await made.rotate('2', '--overlap', '0')

    expect(stdout).toMatch(TEXT)
    expect(await list(made.run)).toMatchObject([{ state: 'active' }, { state: 'revoked' }, { state: 'active' }])
    expect(await made.run('token', 'revoke', '2')).toEqual(
      done(
        `Nothing to do: token 2 of user me (read, "dash", expires ${(await list(made.run))[1].expires}) was already revoked.`,
      ),
    )
  })
})
