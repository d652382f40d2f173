import { expect, test } from 'bun:test'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK } from 'jose'
import Provider from 'oidc-provider'
import { providerUserName } from '../../src/domain/token.ts'
import { RENEW_MIN_MS } from '../../src/http/jwt/keys.ts'
import { FAKETIME, makeClock } from '../support/clock.ts'
import { AUDIENCE, makeKey } from '../support/issuer.ts'
import { lacks } from '../support/requirement.ts'
import { done } from './support/answers.ts'
import { serveDatabase } from './support/database.ts'
import { codeOf, createPlant, listNames } from './support/service-client.ts'

/** A client of the provider, with all scopes or only one. */
const CLIENT = { id: 'robot', secret: 'a secret of the robot' }
const CONFIGURATION = {
  clients: [
    {
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
      id_token_signed_response_alg: 'ES256',
    },
  ],
  scopes: ['plants:read', 'plants:write'],
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => AUDIENCE,
      getResourceServerInfo: () => ({
        scope: 'plants:read plants:write',
        audience: AUDIENCE,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
}

/** A provider that can end and start again with another key at the same address. */
async function startProvider() {
  let server = createServer()
  let issuer = 'http://127.0.0.1:0'
  const start = async (kid: string) => {
    server = createServer()
    await new Promise<void>((resolve) => server.listen(Number(new URL(issuer).port), '127.0.0.1', resolve))
    issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { privateKey, alg } = await makeKey('ES256')
    const jwks = { keys: [{ ...(await exportJWK(privateKey)), kid, alg, use: 'sig' }] }
    server.on('request', new Provider(issuer, { ...CONFIGURATION, jwks }).callback())
  }
  const stop = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  await start('key 1')
  return {
    issuer,
    stop,
    rotate: () => start('key 2'),
    /** A token of the client, as OAuth clients get one (RFC 6749 §4.4). */
    async token(scope = 'plants:write'): Promise<string> {
      const authorization = `Basic ${btoa(`${CLIENT.id}:${encodeURIComponent(CLIENT.secret)}`)}`
      const body = new URLSearchParams({ grant_type: 'client_credentials', scope })
      const response = await fetch(`${issuer}/token`, { method: 'POST', headers: { authorization }, body })
      const answer = (await response.json()) as { readonly access_token?: string }
      if (answer.access_token === undefined) throw new Error(`no token: ${JSON.stringify(answer)}`)
      return answer.access_token
    },
    [Symbol.asyncDispose]: stop,
  }
}

test.skipIf(lacks(FAKETIME))(
  'a server accepts what a certified provider signs for its clients, also after a change of keys, during an outage and with a clock that is off',
  async () => {
    await using provider = await startProvider()
    using clock = makeClock({ isMonotonic: true })
    await using service = await serveDatabase(['--jwt-issuer', provider.issuer, '--jwt-audience', AUDIENCE], {
      env: clock.env,
    })
    const { server, run, json } = service
    const [writer, reader] = [await provider.token(), await provider.token('plants:read')]
    const user = providerUserName(provider.issuer, CLIENT.id)

    expect([await createPlant(server, writer, 1), await createPlant(server, reader, 2)]).toEqual([200, 403])
    expect(await listNames(server, reader)).toEqual(['Fern 1'])
    expect(await json('user', 'list', '--subject', CLIENT.id, '--jwt-issuer', provider.issuer)).toMatchObject([
      { user, plants: 1, tokens: 0 },
    ])

    await provider.stop()
    expect(await listNames(server, writer)).toEqual(['Fern 1'])
    await provider.rotate()
    const rotated = await provider.token()
    clock.jumpTo(RENEW_MIN_MS)
    expect(await codeOf(server, rotated)).toBe(200)

    expect(await run('user', 'block', user)).toEqual(done(`Blocked user ${user}.`))
    expect([await codeOf(server, rotated), await codeOf(server, writer)]).toEqual([40102, 40102])
    const deleted = await run('user', 'delete', '--subject', CLIENT.id, '--jwt-issuer', provider.issuer, '--yes')
    expect(deleted).toEqual(done(`Deleted user ${user} with 0 tokens and 1 plant.`))
    expect(await codeOf(server, rotated)).toBe(200)

    // The clock of the server is 30 seconds or two minutes behind, or two hours ahead.
    for (const [seconds, code] of [
      [-30, 200],
      [-120, 40102],
      [7200, 40102],
    ] as const) {
      const token = await provider.token()
      clock.jumpTo(seconds * 1000)
      expect([seconds, await codeOf(server, token)]).toEqual([seconds, code])
    }
    await server.kill()
    clock.forget(server.pid)
  },
)
