import { expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { exportJWK } from 'jose'
import Provider from 'oidc-provider'
import { providerUserName } from '../../src/domain/token.ts'
import { REFRESH_MIN_MS } from '../../src/http/jwt/keys.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { FAKETIME, makeClock } from '../support/clock.ts'
import { makeFolder } from '../support/folder.ts'
import { AUDIENCE, makeKey, startIssuer } from '../support/issuer.ts'
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
    clock.jumpTo(REFRESH_MIN_MS)
    expect(await codeOf(server, rotated)).toBe(200)

    expect(await run('user', 'block', user)).toEqual(done(`Blocked user ${user}.`))
    expect([await codeOf(server, rotated), await codeOf(server, writer)]).toEqual([40102, 40102])
    const deleted = await run('user', 'delete', '--subject', CLIENT.id, '--jwt-issuer', provider.issuer, '--yes')
    const told = `User ${user} is blocked already, perhaps by a deletion that was stopped.`
    expect(deleted).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining(`\n${told}\nDeleted user ${user} with 0 tokens and 1 plant.\n`),
    })
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

/** A proxy for TLS (RFC 9110 §9.3.6), and the targets that it was asked for. */
async function startTunnels() {
  const targets: unknown[] = []
  const server = createServer().on('connect', ({ url }, client) => {
    targets.push(url)
    const [host, port] = String(url).split(':')
    const upstream = connect(Number(port), host, () => client.write('HTTP/1.1 200 OK\r\n\r\n'))
    upstream.pipe(client).pipe(upstream)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, targets, [Symbol.dispose]: () => void server.close() }
}

test.skipIf(lacks(OPENSSL))(
  'a server checks the certificate of its identity provider whatever the environment says, which may name further authorities and a proxy',
  async () => {
    using folder = makeFolder()
    const authority = await makeCertificate(folder.path, 'authority', { isAuthority: true })
    const tls = await makeCertificate(folder.path, 'provider', { issuer: authority })
    const hashed = join(folder.path, 'authorities')
    cpSync(authority.certPath, join(hashed, 'authority.pem'))
    Bun.spawnSync(['openssl', 'rehash', hashed])
    await using issuer = await startIssuer({ tls })
    await using local = await startIssuer()
    using proxy = await startTunnels()
    const trust = { NODE_EXTRA_CA_CERTS: authority.certPath }
    const environments: readonly [Record<string, string>, number, boolean, typeof issuer?][] = [
      [{}, 50303, false],
      [{ NODE_TLS_REJECT_UNAUTHORIZED: '0' }, 50303, false],
      [trust, 200, false],
      [{ ...trust, HTTPS_PROXY: proxy.url }, 200, true],
      [{ ...trust, HTTPS_PROXY: proxy.url, NO_PROXY: '127.0.0.1' }, 200, false],
      [{ HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url }, 200, false, local],
      [{ SSL_CERT_FILE: authority.certPath, ALL_PROXY: proxy.url, all_proxy: proxy.url }, 200, false],
      [{ SSL_CERT_DIR: hashed }, 200, false],
    ]

    for (const [env, code, isByProxy, { issuer: url, token } = issuer] of environments) {
      const flags = ['--jwt-issuer', url, '--jwt-audience', AUDIENCE]
      await using service = await serveDatabase(flags, { env })
      expect([env, await codeOf(service.server, await token())]).toEqual([env, code])
      expect(proxy.targets.splice(0).length > 0).toBe(isByProxy)
    }
  },
)
