import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withFileTokens } from '../../src/cli/serve/file-tokens.ts'
import type { FileToken } from '../../src/cli/serve/tokens-file.ts'
import { hashText } from '../../src/domain/token.ts'
import { CREATED_AT_MS, createToken, newToken } from '../store/fixtures.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { lacks } from '../support/requirement.ts'
import { STORES } from '../support/stores.ts'
import { makeFileToken } from '../support/tokens-file.ts'
import { until } from '../support/until.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

const DISK_BYTES = 1024 ** 2

/** A database with a token, and a server whose file has the same token, with scope `fileScope`, and another one of user you. */
async function serveBoth(scope: string, fileScope: string) {
  const made = makeDatabase()
  const run = (...args: readonly string[]) => made.run(...args)
  const text = (await run('token', 'create', '--user', 'me', '--scope', scope)).stdout.trim()
  const hash = (await runPlantstore(['token', 'hash'], { stdin: text })).stdout.trim()
  const other = makeFileToken('you')
  const path = join(made.folder, 'tokens')
  writeFileSync(path, `me ${fileScope} ${hash}\n${other.line}\n`)
  const start = () => serve(made.database, ['--tokens-file', path])
  return { run, text, other, start, [Symbol.dispose]: made[Symbol.dispose] }
}

describe.concurrent('a token of a file', () => {
  test('has the scope of the database if the database has it too', async () => {
    using both = await serveBoth('read', 'write')
    await using server = await both.start()
    const status = async (token: string) =>
      (await server.request('POST', '/plants', { token, body: { id: 1, name: 'Fern' } })).status

    expect([await status(both.text), await status(both.other.text)]).toEqual([403, 200])
  })

  test('is refused if it was revoked in the database, before the start or while the server runs', async () => {
    using both = await serveBoth('write', 'write')
    await using server = await both.start()
    const status = async ({ request }: typeof server) => (await request('GET', '/plants', { token: both.text })).status
    const before = await status(server)
    await both.run('token', 'revoke', '1')
    await using later = await both.start()

    expect([before, await status(server), await status(later)]).toEqual([200, 401, 401])
  })

  test('creates its user with its first request, and again after user delete', async () => {
    using both = await serveBoth('write', 'write')
    await using server = await both.start()
    const names = async () =>
      JSON.parse((await both.run('user', 'list', '--json')).stdout).map(({ user }: { readonly user: string }) => user)
    const list = async () => {
      const answer = await server.request('GET', '/plants', { token: both.other.text })
      return [answer.status, await answer.json()]
    }
    const before = await names()
    await server.request('POST', '/plants', { token: both.other.text, body: { id: 1, name: 'Fern' } })
    const after = [await names(), await list()]
    await both.run('user', 'delete', 'you', '--yes')

    expect([before, after]).toEqual([
      ['me'],
      [
        ['me', 'you'],
        [200, [{ name: 'Fern' }]],
      ],
    ])
    expect([await list(), await names()]).toEqual([
      [200, []],
      ['me', 'you'],
    ])
  })

  test('is refused with 40102 while its user is blocked', async () => {
    using both = await serveBoth('write', 'write')
    await using server = await both.start()
    const code = async () => {
      const body = await (await server.request('GET', '/plants', { token: both.other.text })).text()
      return JSON.parse(body).error
    }
    const before = await code()
    await both.run('user', 'block', 'you')
    const blocked = await code()
    await both.run('user', 'unblock', 'you')

    expect([before, blocked, await code()]).toEqual([undefined, 40102, undefined])
  })

  test('has its hash as its id in the log, and no record of its last use', async () => {
    using both = await serveBoth('write', 'write')
    const server = await both.start()
    await server.request('GET', '/plants', { token: both.other.text })
    expect(await server.end()).toBe(0)
    const lines = server.stdout().trim().split('\n')

    expect(lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request')).toEqual([
      expect.objectContaining({ status: 200, user: 'you', tokenId: both.other.hash }),
    ])
    expect(server.stdout()).not.toContain('warn')
    expect(JSON.parse((await both.run('token', 'list', '--json')).stdout)).toHaveLength(1)
  })

  test('has a rate limit of its own', async () => {
    const tokens = [makeFileToken(), makeFileToken()]
    using made = makeDatabase()
    const path = join(made.folder, 'tokens')
    writeFileSync(path, tokens.map(({ line }) => line).join('\n'))
    await using server = await serve(made.database, ['--tokens-file', path, '--rate-limit', '2/h'])
    const statuses: number[] = []
    for (const { text: token } of [...tokens, ...tokens, ...tokens]) {
      statuses.push((await server.request('GET', '/plants?limit=5', { token })).status)
    }

    expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
  })

  test('is accepted only by a server whose own file has it', async () => {
    const tokens = [makeFileToken(), makeFileToken()]
    await using service = await serveDatabase()
    const servers = await Promise.all(
      tokens.map(({ line }, index) => {
        const path = join(service.folder, `tokens${index}`)
        writeFileSync(path, line)
        return serve(service.database, ['--tokens-file', path])
      }),
    )
    const statuses = await Promise.all(
      servers.map((server) =>
        Promise.all(tokens.map(async ({ text: token }) => (await server.request('GET', '/plants', { token })).status)),
      ),
    )
    for (const server of servers) await server.kill()

    expect(statuses).toEqual([
      [200, 401],
      [401, 200],
    ])
  })

  test.skipIf(lacks(MOUNTS))('of a new user gets 50301 on a full disk, and other users are served', async () => {
    using disk = mountDisk(DISK_BYTES)
    const [old, fresh] = [makeFileToken('old'), makeFileToken('fresh')]
    using made = makeDatabase()
    const path = join(made.folder, 'tokens')
    writeFileSync(path, `${old.line}\n${fresh.line}\n`)
    await using server = await serve(join(disk.path, 'plantstore.db'), ['--tokens-file', path])
    const answer = async (token: string) => {
      const response = await server.request('GET', '/plants', { token })
      return [response.status, await response.json()]
    }
    await answer(old.text)
    disk.fillUp()
    const full = [await answer(old.text), await answer(fresh.text)]
    disk.makeRoom()

    expect(full).toEqual([
      [200, []],
      [503, expect.objectContaining({ error: 50301 })],
    ])
    expect(await answer(fresh.text)).toEqual([200, []])
  })
})

const fileToken: FileToken = { userName: 'me', scope: 'read', expiresAtMs: undefined, line: 1 }

describe.each(STORES)('tokens of a file beside the tokens of a store, $name', ({ open }) => {
  test('count with the user of that name, who is created once and only for a token that has not expired', async () => {
    await using opened = await open()
    const [one, other, expired] = [newToken('').hash, newToken('').hash, newToken('').hash]
    const tokens = new Map<string, FileToken>([
      [hashText(one), fileToken],
      [hashText(other), { ...fileToken, scope: 'write' }],
      [hashText(expired), { ...fileToken, userName: 'you', expiresAtMs: CREATED_AT_MS }],
    ])
    const { findToken } = withFileTokens(
      opened.store,
      () => tokens,
      () => CREATED_AT_MS,
    )
    const found = await Promise.all([one, other, expired, newToken('').hash].map(findToken))

    expect(found).toMatchObject([
      { id: hashText(one), userName: 'me', scope: 'read', userIsBlocked: false },
      { id: hashText(other), userName: 'me', scope: 'write', userId: found[0]?.userId },
      ...[undefined, undefined],
    ] as object[])
    expect(await opened.store.listUsers()).toMatchObject([{ name: 'me', createdAtMs: CREATED_AT_MS, tokens: 0 }])
  })

  test('lose against a token of the store with the same hash', async () => {
    await using opened = await open()
    const { hash, token } = await createToken(opened.store, 'you')
    const tokens = new Map([[hashText(hash), fileToken]])

    expect(await withFileTokens(opened.store, () => tokens, Date.now).findToken(hash)).toEqual(token)
  })

  test('are the same until either changes', async () => {
    await using opened = await open()
    const { store } = opened
    const user = (await createToken(store, 'me')).token.userId
    let tokens = new Map([['', fileToken]])
    const both = withFileTokens(store, () => tokens, Date.now)
    const known = () => until('the version is known', () => both.tokensVersion())
    const changes = [
      () => {},
      () => {
        tokens = new Map(tokens)
      },
      () => store.setUserBlock('me', CREATED_AT_MS),
    ]
    const areSame: boolean[] = []
    for (const change of changes) {
      const before = await known()
      await change()
      await known()
      areSame.push(both.hasSameTokens(user, before))
    }

    expect(areSame).toEqual([true, false, false])
  })
})
