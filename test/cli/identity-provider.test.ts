import { describe, expect, test } from 'bun:test'
import { createServer, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK } from 'jose'
import Provider from 'oidc-provider'
import { providerUserName } from '../../src/domain/token.ts'
import { RENEW_MIN_MS } from '../../src/http/jwt/keys.ts'
import { FAKETIME, makeClock } from '../support/clock.ts'
import { serve } from '../support/executable.ts'
import { AUDIENCE, type IssuerKey, makeKey } from '../support/issuer.ts'
import { scrape } from '../support/metrics.ts'
import { lacks, program } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { done, refusal } from './support/answers.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'
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

/** A provider that can end and start again with other keys at the same address. */
async function startProvider() {
  let server: HttpServer | undefined
  let issuer = 'http://127.0.0.1:0'
  const listen = async (keys: readonly IssuerKey[]) => {
    const port = Number(new URL(issuer).port)
    const started = createServer()
    await new Promise<void>((resolve) => started.listen(port, '127.0.0.1', resolve))
    issuer = `http://127.0.0.1:${(started.address() as AddressInfo).port}`
    const jwks = {
      keys: await Promise.all(
        keys.map(async ({ privateKey, kid, alg }) => ({ ...(await exportJWK(privateKey)), kid, alg, use: 'sig' })),
      ),
    }
    started.on('request', new Provider(issuer, { ...CONFIGURATION, jwks }).callback())
    server = started
  }
  const stop = async () => {
    server?.closeAllConnections()
    await new Promise((resolve) => server?.close(resolve))
  }
  const keys = [await makeKey('ES256', 'key 1'), await makeKey('ES256', 'key 2')] as const
  await listen([keys[0]])
  return {
    issuer,
    flags: ['--jwt-issuer', issuer, '--jwt-audience', AUDIENCE],
    stop,
    /** Starts the provider again with its second key alone. */
    rotate: () => listen([keys[1]]),
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

describe.concurrent('a server with an identity provider', () => {
  test.skipIf(lacks(FAKETIME))(
    'accepts what a certified provider signs for its clients, also after a change of keys and during an outage',
    async () => {
      await using provider = await startProvider()
      using clock = makeClock({ isMonotonic: true })
      await using service = await serveDatabase(provider.flags, { env: clock.env })
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
      await server.kill()
      clock.forget(server.pid)
    },
  )

  test('starts without its provider, refuses only JWTs, and says so', async () => {
    await using provider = await startProvider()
    const token = await provider.token()
    await provider.stop()
    await using service = await serveDatabase([...provider.flags, '--metrics-listen', '127.0.0.1:0'])

    expect(await codeOf(service.server, token)).toBe(50303)
    expect(await codeOf(service.server, service.token)).toBe(200)
    expect(service.server.stdout()).toContain('the keys of the identity provider could not be read')
    expect(await scrape(service.server)).toMatchObject({ plantstore_jwt_keys_failed_total: 1 })
  })

  test.skipIf(lacks(program('faketime'))).each([
    ['30 seconds behind', '-30s', 200],
    ['two minutes behind', '-120s', 40102],
    ['two hours ahead', '+2h', 40102],
  ])('with a clock that is %s answers with the code of the third column', async (_, offset, code) => {
    await using provider = await startProvider()
    using made = makeDatabase()
    const token = await provider.token()
    await createTokenIn(made.database)
    await using server = await serve(made.database, provider.flags, { under: ['faketime', '-f', offset] })

    expect(await codeOf(server, token)).toBe(code)
  })
})

const ISSUER = 'https://login.example.org/tenant/'
const ISSUER_FLAGS = ['--jwt-issuer', ISSUER]
const ADA = providerUserName(ISSUER, 'ada')

describe.concurrent('the users of an identity provider', () => {
  test('can be blocked before they come, by their subject', async () => {
    using made = makeDatabase()
    await createTokenIn(made.database)
    const user = (...args: readonly string[]) => made.run('user', ...args, ...ISSUER_FLAGS)

    expect(await user('unblock', '--subject', 'ada')).toEqual(refusal(1, `There is no user ${ADA}.`))
    expect(await user('delete', '--subject', 'ada', '--yes')).toEqual(refusal(1, `There is no user ${ADA}.`))
    expect(await made.json('user', 'list', '--subject', 'ada', ...ISSUER_FLAGS)).toEqual([])
    expect(await user('block', '--subject', 'ada')).toEqual(done(`Blocked user ${ADA}.`))
    expect(await made.json('user', 'list', '--subject', 'ada', ...ISSUER_FLAGS)).toMatchObject([
      { user: ADA, plants: 0, tokens: 0, blocked: expect.any(String) },
    ])
    expect(await user('unblock', '--subject', 'ada')).toEqual(done(`Unblocked user ${ADA}.`))
  })

  test('are named by a name or a subject, and a subject needs an issuer', async () => {
    using made = makeDatabase()
    const which = refusal(2, 'Say which user: a name, or --subject.')

    expect(await made.run('user', 'block')).toEqual(which)
    expect(await made.run('user', 'block', 'me', '--subject', 'ada')).toEqual(which)
    expect(await made.run('user', 'block', '--subject', 'ada')).toEqual(
      refusal(2, 'Say whose subject this is: --jwt-issuer (PLANTSTORE_JWT_ISSUER).'),
    )
  })

  test('get no token and no plant by a command', async () => {
    using made = makeDatabase()
    const rule = 'a name that does not begin with oidc. as those of users of an identity provider do'
    const hash = `sha256:${'0'.repeat(64)}`

    expect(await made.run('token', 'create', '--user', ADA)).toEqual(refusal(2, `--user must be ${rule}.`))
    expect(await made.feed(`${ADA} read\n`, 'token', 'create', '--batch')).toEqual(
      refusal(2, `Line 1 of stdin: the user must be ${rule}.`),
    )
    expect(await made.feed(`${ADA} read ${hash}\n`, 'token', 'import', '-')).toEqual(
      refusal(2, `Line 1 of stdin: the user must be ${rule}.`),
    )
    await createTokenIn(made.database)
    const line = JSON.stringify({ user: ADA, id: 1, name: 'Fern' })
    expect((await made.feed(`${line}\n`, 'import', '-')).stderr).toContain(`line 1: \`user\` must be ${rule}.`)
    expect((await made.run('import', '-', '--user', ADA)).stderr).toContain(`--user must be ${rule}.`)
    expect((await made.json('user', 'list')).map(({ user }: { user: string }) => user)).toEqual(['me'])
  })

  test('keep a server with an identity provider from a database where a command has made such a user', async () => {
    using made = makeDatabase()
    await createTokenIn(made.database, 'oidc.me')

    const ended = await made.run('serve', '--listen', '127.0.0.1:0', ...ISSUER_FLAGS, '--jwt-audience', 'x')

    expect(ended.exitCode).toBe(3)
    expect(ended.stderr).toContain(
      'A command has made the user oidc.me, whom an identity provider seems to know: delete this user.',
    )
  })
})

const BOTH = 'JWTs need both --jwt-issuer (PLANTSTORE_JWT_ISSUER) and --jwt-audience (PLANTSTORE_JWT_AUDIENCE).'

test.each([
  [['--jwt-issuer', ISSUER], BOTH],
  [['--jwt-audience', 'x'], BOTH],
  [['--jwt-keys', 'x'], BOTH],
  [['--jwt-default-scope', 'read'], BOTH],
  ...[
    'http://example.org',
    'ftp://x',
    'https://me@example.org',
    'https://example.org?x=1',
    'https://example.org#x',
    'example.org',
    'http://127.0.0.1.example.org',
  ].map(
    (url) =>
      [
        ['--jwt-issuer', url],
        '--jwt-issuer (PLANTSTORE_JWT_ISSUER) must be an https URL without user, query and fragment; http is only for this machine.',
      ] as const,
  ),
] as const)('serve refuses %j', async (flags, message) => {
  using made = makeDatabase()

  expect(await made.run('serve', ...flags)).toEqual(refusal(2, message))
})
