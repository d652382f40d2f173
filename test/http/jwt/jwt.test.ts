import { describe, expect, test } from 'bun:test'
import type { JWTPayload } from 'jose'
import { providerUserName } from '../../../src/domain/token.ts'
import type { ProviderPolicy } from '../../../src/http/jwt/provider.ts'
import { AUDIENCE, startIssuer } from '../../support/issuer.ts'
import { until } from '../../support/until.ts'
import { type Service, startService } from '../support/service.ts'
import { type ServiceOptions, TRANSPORTS, type Transport } from '../support/transports.ts'

/** A service that accepts the JWTs of an issuer. */
async function startBoth(transport: Transport, options: ServiceOptions = {}, policy: Partial<ProviderPolicy> = {}) {
  const issuer = await startIssuer()
  const jwt = { issuer: issuer.issuer, audience: AUDIENCE, ...policy }
  const service = await startService(transport, { ...options, jwt })
  return {
    ...service,
    issuer,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      await issuer[Symbol.asyncDispose]()
    },
  }
}

const codeOf = async (answer: Promise<{ readonly status: number; readonly body: { readonly error?: number } }>) => {
  const { status, body } = await answer
  return body?.error ?? status
}

const isoOf = (seconds: number): string => new Date(seconds * 1000).toISOString()

/** The codes or statuses of a list and of a create that this token asks for. */
async function accessOf(service: Service, token: string): Promise<readonly number[]> {
  return [
    await codeOf(service.list('?limit=5', { token })),
    await codeOf(service.create({ id: 1, name: 'Fern' }, { token })),
  ]
}

describe.each(TRANSPORTS)('a JWT, $name', (transport) => {
  test('gives its user own plants, whom the first create makes and no read', async () => {
    await using service = await startBoth(transport)
    const token = await service.issuer.token()
    const name = providerUserName(service.issuer.issuer, 'ada')

    expect(await codeOf(service.list('', { token }))).toBe(200)
    expect(await codeOf(service.list('?limit=5', { token }))).toBe(200)
    expect(await codeOf(service.get(1, { token }))).toBe(40402)
    expect(await codeOf(service.delete(1, { token }))).toBe(40402)
    expect(await codeOf(service.create({ id: 'x', name: 'Fern' }, { token }))).toBe(40002)
    expect(await service.store.findUser(name)).toBeUndefined()

    expect(await codeOf(service.create({ id: 1, name: 'Fern' }, { token }))).toBe(200)
    expect((await service.list('?limit=5', { token })).body).toEqual([{ name: 'Fern' }])
    expect(await service.names(await service.issuer.token({ jti: 'another' }))).toEqual(['Fern'])
    expect(await service.names(await service.issuer.token({ sub: 'bob' }))).toEqual([])
    expect(await service.names()).toEqual([])
    expect(await service.store.listUsers()).toMatchObject([{ name: 'me' }, { name, plants: 1, tokens: 0 }])
    expect(await codeOf(service.delete(1, { token }))).toBe(204)
  })

  test('is refused from the block of its user on, whom the block makes, and after a deletion its user is a new one', async () => {
    await using service = await startBoth(transport)
    const { store, issuer } = service
    const [ada, bob] = [await issuer.token(), await issuer.token({ sub: 'bob' })]
    const nameOf = (subject: string) => providerUserName(issuer.issuer, subject)
    const seen = () => Bun.sleep(transport.othersSeenWithinMs ?? 100)
    await service.create({ id: 1, name: 'Fern' }, { token: ada })
    expect(await accessOf(service, ada)).toEqual([200, 40901])

    await store.setUserBlock(nameOf('ada'), 1)
    await store.setUserBlock(nameOf('bob'), 1, true)
    await seen()
    expect(await accessOf(service, ada)).toEqual([40102, 40102])
    expect(await accessOf(service, bob)).toEqual([40102, 40102])
    await store.setUserBlock(nameOf('ada'), undefined)
    await seen()
    expect(await service.names(ada)).toEqual(['Fern'])

    await store.deleteUser(nameOf('ada'))
    await seen()
    expect(await service.names(ada)).toEqual([])
    expect(await accessOf(service, ada)).toEqual([200, 200])
  })

  test('may do what its scopes say', async () => {
    await using service = await startBoth(transport)
    const { issuer } = service
    const claims: readonly [JWTPayload, readonly number[]][] = [
      [{ scope: 'plants:write' }, [200, 200]],
      [{ scope: 'openid plants:read email' }, [200, 40301]],
      [{ scope: 'plants:read plants:write' }, [200, 40901]],
      [{ scope: undefined, scp: 'plants:write' }, [200, 40901]],
      [{ scope: undefined, scp: ['a', 'plants:read'] }, [200, 40301]],
      [{ scope: undefined, scp: [['plants:write']] }, [40301, 40301]],
      [{ scope: 'openid', scp: ['plants:write'] }, [200, 40901]],
      [{ scope: 'email' }, [40301, 40301]],
      [{ scope: 'plants:writer xplants:write PLANTS:WRITE' }, [40301, 40301]],
      [{ scope: ['openid', 'plants:write'] }, [200, 40901]],
      [{ scope: ['plants:read', 7, null] }, [200, 40301]],
      [{ scope: ['email plants:write'] }, [40301, 40301]],
      [{ scope: { 0: 'plants:write' } }, [40301, 40301]],
      [{ scope: undefined }, [40301, 40301]],
      [{ scope: '' }, [40301, 40301]],
    ]

    for (const [others, codes] of claims) {
      expect([others, await accessOf(service, await issuer.token(others))]).toEqual([others, codes])
    }
    const nothing = await service.list('', { token: await issuer.token({ scope: 'email' }) })
    const read = await service.delete(1, { token: await issuer.token({ scope: 'plants:read' }) })
    const own = await service.delete(1, { token: (await service.createToken({ scope: 'read' })).text })
    const challenge = (scope: string) => `Bearer realm="plantstore", error="insufficient_scope", scope="${scope}"`
    expect([nothing, read, own].map(({ headers }) => headers.get('www-authenticate'))).toEqual(
      ['plants:write', 'plants:write', 'write'].map(challenge),
    )
    expect(nothing.body.message).toBe(
      'This token may do nothing here: get one with the scope plants:read or plants:write.',
    )
  })

  test('is told its subject, what it may do, and its own end, also between that and the leeway', async () => {
    await using service = await startBoth(transport)
    const { issuer } = service
    const nowS = Math.floor(Date.now() / 1000)
    const told = async (claims: JWTPayload) =>
      (await service.request('GET', '/token', { token: await issuer.token(claims) })).body
    const claims: readonly [JWTPayload, object][] = [
      [
        { sub: 'ada', exp: nowS + 3600.0019 },
        { user: 'ada', scope: 'write', expires: isoOf(nowS + 3600.001) },
      ],
      [
        { sub: 'ada', exp: nowS - 5, scope: 'plants:read' },
        { user: 'ada', scope: 'read', expires: isoOf(nowS - 5) },
      ],
      [
        { sub: 'x\n"', exp: 253402300799 },
        { user: 'x\n"', scope: 'write', expires: '9999-12-31T23:59:59.000Z' },
      ],
      [
        { sub: 'x', exp: 253402300800 },
        { user: 'x', scope: 'write' },
      ],
      [
        { sub: 'x', exp: 1e300 },
        { user: 'x', scope: 'write' },
      ],
    ]

    for (const [others, body] of claims) expect([others, await told(others)]).toEqual([others, body])
    expect(await told({ scope: 'email' })).toMatchObject({ error: 40301 })
    const token = await issuer.token({ exp: nowS + 3600 })
    await service.create({ id: 1, name: 'Fern' }, { token })
    // The second time it is cached.
    for (const _ of [1, 2]) {
      const { body } = await service.request('GET', '/token', { token })
      expect(body).toEqual({ user: 'ada', scope: 'write', expires: isoOf(nowS + 3600) })
    }
  })

  test('without a scope may do what --jwt-default-scope says, and one with other scopes nothing', async () => {
    await using service = await startBoth(transport, {}, { defaultScope: 'read' })
    const { issuer } = service

    expect(await accessOf(service, await issuer.token({ scope: undefined }))).toEqual([200, 40301])
    expect(await accessOf(service, await issuer.token({ scope: 'email' }))).toEqual([40301, 40301])
    expect(await accessOf(service, await issuer.token({ scp: 'plants:write', scope: undefined }))).toEqual([200, 200])
  })

  test('counts to the rate limit of its user, whatever the JWT, and only if it is accepted', async () => {
    await using service = await startBoth(transport, { rateLimit: { requests: 3, periodMs: 3_600_000 } })
    const { issuer } = service
    const tokens = await Promise.all(['1', '2', '3', '4'].map((jti) => issuer.token({ jti })))

    const codes = []
    for (const token of tokens) codes.push(await codeOf(service.list('', { token })))

    expect(codes).toEqual([200, 200, 200, 42901])
    expect(await codeOf(service.list('', { token: await issuer.token({ sub: 'bob' }) }))).toBe(200)
    expect(await codeOf(service.list('', { token: await issuer.token({ scope: '' }) }))).toBe(42901)
    expect(await codeOf(service.list('', { token: await issuer.token({ aud: 'x' }) }))).toBe(40102)
    expect(await codeOf(service.list())).toBe(200)
  })

  test('holds to the quota, and makes no user if that is 0', async () => {
    await using service = await startBoth(transport, { quotaPlants: 0 })
    const token = await service.issuer.token()

    expect(await codeOf(service.create({ id: 1, name: 'Fern' }, { token }))).toBe(40302)
    expect(await service.store.listUsers()).toMatchObject([{ name: 'me' }])
  })

  test('leaves its name and its subject in the log, but not its text', async () => {
    await using service = await startBoth(transport)
    const token = await service.issuer.token({ sub: 'ada\n"lovelace"' })
    await service.list('', { token })
    await service.list('', { token: await service.issuer.token({ sub: '𝕬'.repeat(1500) }) })

    const [first, second] = await until('both lines are in the log', (see) => {
      const lines = service.logLines().filter(({ msg }) => msg === 'request')
      return see(lines).length === 2 && lines
    })
    const user = providerUserName(service.issuer.issuer, 'ada\n"lovelace"')
    expect(first).toMatchObject({ user, subject: 'ada\n"lovelace"', status: 200 })
    expect(first).not.toHaveProperty('tokenId')
    expect(JSON.stringify(second).length).toBeLessThan(1024)
    expect(service.logs()).not.toContain(token.slice(0, 40))
  })

  test('is known to clients: metadata of the resource, challenges with their address, and a second security scheme', async () => {
    await using service = await startBoth(transport, { publicUrl: 'https://example.org/plants' })
    const { issuer } = service.issuer
    const path = '/.well-known/oauth-protected-resource'
    const metadata = await service.request('GET', path, { token: null })

    expect(metadata.body).toEqual({
      resource: 'https://example.org/plants',
      authorization_servers: [issuer],
      scopes_supported: ['plants:read', 'plants:write'],
      bearer_methods_supported: ['header'],
    })
    const others = ['HEAD', 'OPTIONS', 'POST'].map((method) => service.request(method, path, { token: null }))
    expect(await Promise.all(others)).toMatchObject([{ status: 200 }, { status: 204 }, { status: 405 }])
    const challenges = [service.list('', { token: null }), service.list('', { token: 'x' })].map(async (answer) =>
      (await answer).headers.get('www-authenticate'),
    )
    const where = `resource_metadata="https://example.org/plants${path}"`
    expect(await Promise.all(challenges)).toEqual([
      `Bearer realm="plantstore", ${where}`,
      `Bearer realm="plantstore", error="invalid_token", ${where}`,
    ])
    const { body: document } = await service.request('GET', '/openapi.json', { token: null })
    expect(document.security).toEqual([{ bearerAuth: [] }, { openIdConnect: [] }])
    expect(document.components.securitySchemes.openIdConnect).toMatchObject({
      type: 'openIdConnect',
      openIdConnectUrl: `${issuer}/.well-known/openid-configuration`,
    })
  })

  test('names the address by which the client has come if there is no public one', async () => {
    await using service = await startBoth(transport)
    const { headers } = await service.list('', { token: 'x' })
    const [, url] = /resource_metadata="(http:\/\/[^"]+)"/.exec(headers.get('www-authenticate') ?? '') ?? []

    expect(URL.parse(url ?? '')?.hostname).toMatch(/^(?:localhost|127\.0\.0\.1)$/)
  })
})
