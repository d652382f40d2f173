import { expect, test } from 'bun:test'
import { makeToken } from '../../src/domain/token.ts'
import { openStore } from '../../src/store/open.ts'
import { makeDatabase } from '../cli/support/database.ts'
import { serve } from '../support/executable.ts'
import { AUDIENCE, startIssuer } from '../support/issuer.ts'
import { lacks } from '../support/requirement.ts'
import { createToken } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { HAPROXY, startHaproxy } from './postgres/haproxy.ts'

const SHARDS = ['one', 'two', 'three']
const USERS = 100
/** Every tenth user has a JWT. */
const JWT_EVERY = 10

test.skipIf(lacks(HAPROXY))(
  'HAProxy with the example leads each of 100 users to the store of the map, and a store that is down is down for its users alone',
  async () => {
    await using stack = new AsyncDisposableStack()
    const issuer = stack.use(await startIssuer())
    const databases = SHARDS.map(() => stack.use(makeDatabase()).database)
    const flags = ['--jwt-issuer', issuer.issuer, '--jwt-audience', AUDIENCE]
    const users: { readonly token: string; readonly shard: number; readonly line: string }[] = []
    for (const [shard, database] of databases.entries()) {
      const store = await openStore(database, () => {})
      for (let user = shard; user < USERS; user += SHARDS.length) {
        const [name, isJwt] = [`user-${user}`, user % JWT_EVERY === 0]
        const token = isJwt ? await issuer.token({ sub: name }) : (await createToken(store, { user: name })).text
        const key = isJwt ? name : new Bun.CryptoHasher('sha256').update(token).digest('hex')
        users.push({ token, shard, line: `${key} ${SHARDS[shard]}\n` })
      }
      await store.close()
    }
    const servers = await Promise.all(databases.map(async (database) => stack.use(await serve(database, flags))))
    const map = users.map(({ line }) => line).join('')
    const ports = servers.map(({ port }) => port)
    const proxy = stack.use(await startHaproxy('haproxy-shards.cfg', ports, { map }))
    const ask = (port: number | undefined, token: string, init: RequestInit = {}) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
      return fetch(`http://127.0.0.1:${port}/plants/1`, { ...init, headers })
    }
    const statuses = () => Promise.all(users.map(async ({ token }) => (await ask(proxy.port, token)).status))

    const body = (shard: number) => JSON.stringify({ name: SHARDS[shard] })
    const puts = users.map(({ token, shard }) => ask(proxy.port, token, { method: 'PUT', body: body(shard) }))
    expect(new Set((await Promise.all(puts)).map(({ status }) => status))).toEqual(new Set([201]))
    for (const { token, shard } of users) {
      const answers = await Promise.all(ports.map((port) => ask(port, token)))
      expect(answers.flatMap(({ status }, store) => (status === 200 ? [store] : []))).toEqual([shard])
      expect(await answers[shard]?.json()).toEqual({ name: SHARDS[shard] })
    }

    const unknown = makeToken({ userName: 'me', scope: 'write', label: undefined, expiresAfterMs: undefined }, 0).text
    const forged = (await issuer.token({ sub: 'user-1' })).replace(/.{5}$/, 'AAAAA')
    for (const token of [unknown, forged, 'none'])
      expect(await (await ask(proxy.port, token)).json()).toMatchObject({ error: 40102 })

    await servers[1]?.kill()
    const expected = users.map(({ shard }) => (shard === 1 ? 503 : 200))
    await until('HAProxy has noticed', async () => Bun.deepEquals(await statuses(), expected))
  },
)
