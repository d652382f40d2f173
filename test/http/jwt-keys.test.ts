import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { NewPlant } from '../../src/domain/plant.ts'
import type { Store } from '../../src/domain/store.ts'
import { providerUserName } from '../../src/domain/token.ts'
import {
  CANDIDATES_MAX,
  DOCUMENT_MAX_BYTES,
  KEYS_MAX_AGE_MS,
  REFRESH_EVERY_MS,
  REFRESH_MIN_MS,
} from '../../src/http/jwt/keys.ts'
import { VERIFIED_FOR_MS } from '../../src/http/jwt/provider.ts'
import { HTTP_DEADLINES } from '../../src/http/options.ts'
import { rejectionOf } from '../store/fixtures.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { makeFolder } from '../support/folder.ts'
import { AUDIENCE, type IssuerKey, makeKey, startIssuer } from '../support/issuer.ts'
import { countOpen } from '../support/process.ts'
import { lacks } from '../support/requirement.ts'
import { SLACK_MS } from '../support/slack.ts'
import { until } from '../support/until.ts'
import { policyOf, signInOf } from './support/pages.ts'
import { startService } from './support/service.ts'
import { IN_PROCESS, type ServiceOptions } from './support/transports.ts'

const TIMED_OUT = /timed? ?out/i
/** Others are not about the deadline. */
const deadlinesFor = (reason: RegExp) => (reason === TIMED_OUT ? { deadlines: HTTP_DEADLINES } : {})

type Issuer = Awaited<ReturnType<typeof startIssuer>>

describe.each(IN_PROCESS)('the keys of an identity provider, $name', (transport) => {
  /** A service with clocks that stand still until the test moves them. */
  async function startAt({ issuer }: Pick<Issuer, 'issuer'>, options: Partial<ServiceOptions> = {}) {
    let passedMs = 0
    const startMs = Date.now()
    const app = { nowMs: () => startMs + passedMs, monotonicMs: () => passedMs, ...options.app }
    const jwt = { issuer, audience: AUDIENCE, ...options.jwt }
    const service = await startService(transport, { ...options, jwt, app })
    return {
      ...service,
      pass(ms: number) {
        passedMs += ms
      },
      code: async (token?: string) => {
        const { status, body } = await service.list('?limit=1', token === undefined ? {} : { token })
        return body?.error ?? status
      },
      warnings: () =>
        service.logLines().flatMap(({ level, reason, msg }) => (level === 'warn' ? [`${reason ?? msg}`] : [])),
    }
  }

  test('are read at most once in 10 seconds, however many JWTs have unknown ones, and no JWT waits for long', async () => {
    await using issuer = await startIssuer()
    await using service = await startAt(issuer)
    const next = await makeKey('ES256', 'key 2')
    const rotated = await issuer.token({}, {}, next)
    const reads = () => issuer.state.requests.filter((path) => path === '/jwks').length
    expect(await service.code(await issuer.token())).toBe(200)
    expect(reads()).toBe(1)
    issuer.state.keys = [next.jwk]

    const unknown = await Promise.all(Array.from({ length: 50 }, (_, index) => issuer.token({}, { kid: `${index}` })))
    expect(new Set(await Promise.all([rotated, ...unknown].map(service.code)))).toEqual(new Set([40102]))
    expect(reads()).toBe(1)

    service.pass(REFRESH_MIN_MS)
    const [first, ...others] = await Promise.all([rotated, ...unknown].map(service.code))
    expect([first, ...new Set(others)]).toEqual([200, 40102])
    expect(reads()).toBe(2)
  })

  test('that were withdrawn count for no longer than five minutes', async () => {
    await using issuer = await startIssuer()
    await using service = await startAt(issuer)
    const token = await issuer.token()
    await service.create({ id: 1, name: 'Fern' }, { token })
    const next = await makeKey('ES256', 'key 2')
    issuer.state.keys = [next.jwk]
    service.pass(VERIFIED_FOR_MS - 1)
    expect(await service.code(await issuer.token({}, {}, next))).toBe(200)
    expect(await service.code(token)).toBe(200)

    service.pass(1)
    expect(await service.code(token)).toBe(40102)
  })

  test('are used for 24 hours while the provider is away, and then JWTs alone are answered with 503', async () => {
    await using issuer = await startIssuer()
    await using service = await startAt(issuer)
    const exp = Math.floor(Date.now() / 1000) + 3 * 86_400
    const tokenOf = (jti: string) => issuer.token({ exp, jti })
    expect(await service.code(await tokenOf('0'))).toBe(200)
    issuer.state.answers.set('/jwks', () => new Response(null, { status: 500 }))

    service.pass(KEYS_MAX_AGE_MS - 1)
    expect(await service.code(await tokenOf('1'))).toBe(200)
    service.pass(1)
    expect(await service.code(await tokenOf('2'))).toBe(50303)
    expect(await service.code()).toBe(200)
    expect(service.warnings()).toEqual([`Error: ${issuer.origin}/jwks answers 500`])

    issuer.state.answers.clear()
    service.pass(REFRESH_MIN_MS)
    expect(await service.code(await tokenOf('3'))).toBe(200)
  })

  test('that were never read make a JWT wait for nothing but one attempt in 10 seconds, and malformed ones not even for that', async () => {
    await using issuer = await startIssuer()
    issuer.state.answers.set('/.well-known/openid-configuration', () => new Response(null, { status: 404 }))
    await using service = await startAt(issuer)
    const token = await issuer.token()

    expect(await Promise.all([token, token, 'x.y.z', 'x', 'plst_x'].map(service.code))).toEqual([
      50303, 50303, 40102, 40102, 40102,
    ])
    const refused = await service.list('', { token })
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(refused.body.message).toContain('The keys of the identity provider could not be read')
    expect(issuer.state.requests).toHaveLength(2)
    issuer.state.answers.clear()
    service.pass(REFRESH_MIN_MS)
    expect(await service.code(token)).toBe(200)
  })

  test('come with the metadata for the page, which names the issuer alone before, and signs in from then on', async () => {
    await using issuer = await startIssuer()
    const path = '/.well-known/openid-configuration'
    const token_endpoint = 'https://login.example.org/token'
    issuer.state.answers.set(path, () => new Response(null, { status: 404 }))
    const client = { clientId: 'page', parameters: [['scope', 'a'] as const] }
    const jwt = { issuer: issuer.issuer, audience: AUDIENCE, client }
    await using service = await startAt(issuer, { jwt })
    const load = async () => {
      const { text, headers } = await service.request('GET', '/', { token: null, headers: { accept: 'text/html' } })
      return [signInOf(text), policyOf(headers)['connect-src']?.slice(1)]
    }
    const settings = (server = {}) => ({ ...client, server: { issuer: jwt.issuer, ...server } })

    expect(await service.code(await issuer.token())).toBe(50303)
    expect(await load()).toEqual([settings(), []])
    issuer.state.answers.set(path, () => Response.json({ ...issuer.metadata, token_endpoint }))
    service.pass(REFRESH_MIN_MS)
    expect(await service.code(await issuer.token())).toBe(200)
    expect(await load()).toEqual([settings({ token_endpoint }), ['https://login.example.org']])
    issuer.state.answers.set(path, () => new Response(null, { status: 404 }))
    service.pass(REFRESH_EVERY_MS)
    expect(await service.code(await issuer.token({}, {}, await makeKey('ES256', 'key 2')))).toBe(40102)
    expect(await load()).toEqual([settings({ token_endpoint }), ['https://login.example.org']])
  })

  test('come by the metadata of OAuth if there are none of OpenID Connect, also for an issuer with a path', async () => {
    await using issuer = await startIssuer({ path: '/realms/plants' })
    const { state, metadata } = issuer
    state.answers.set('/realms/plants/.well-known/openid-configuration', () => new Response(null, { status: 404 }))
    state.answers.set('/.well-known/oauth-authorization-server/realms/plants', () => Response.json(metadata))
    await using service = await startAt(issuer)

    expect(await service.code(await issuer.token())).toBe(200)
  })

  const METADATA = '/.well-known/openid-configuration'
  const keysOf = (body: string | Uint8Array<ArrayBuffer> | ReadableStream, init?: ResponseInit) => () => ({
    '/jwks': () => new Response(body, init),
  })
  const metadataOf = (change: (issuer: Issuer) => object) => (issuer: Issuer) => ({
    [METADATA]: () => Response.json({ ...issuer.metadata, ...change(issuer) }),
  })
  const redirected = (path: string) => (issuer: Issuer) => ({
    [path]: () => Response.redirect(`${issuer.origin}/evil`),
  })
  const endless = (part: Uint8Array, pauseMs: number) =>
    new ReadableStream({
      async pull(controller) {
        await Bun.sleep(pauseMs)
        controller.enqueue(part)
      },
    })
  const space = (bytes: number) => new Uint8Array(bytes).fill(32)
  test.concurrent.each<[string, (issuer: Issuer) => Record<string, () => Response>, RegExp]>([
    ['a redirect of the keys', redirected('/jwks'), /redirect/i],
    ['a redirect of the metadata', redirected(METADATA), /redirect/i],
    [
      'metadata of another issuer',
      metadataOf(() => ({ issuer: 'https://evil.example.org' })),
      /issuer: https:\/\/evil/,
    ],
    ['metadata of the issuer with a slash', metadataOf(({ issuer }) => ({ issuer: `${issuer}/` })), /another issuer/],
    // test/cli/transcripts/identity-provider.txt has more addresses that are not safe.
    ['an address of keys without TLS', metadataOf(() => ({ jwks_uri: 'http://evil.example.org/jwks' })), /no https/],
    ['an address of keys that is a file', metadataOf(() => ({ jwks_uri: 'file:///etc/passwd' })), /no https/],
    ['metadata without an address of keys', metadataOf(() => ({ jwks_uri: undefined })), /no https address/],
    ['metadata that are null', () => ({ [METADATA]: () => Response.json(null) }), /another issuer/],
    ['keys that are a page', keysOf('<html>'), /JSON/],
    ['keys that are a list', keysOf('[]'), /malformed/],
    ['keys without any', keysOf('{}'), /malformed/],
    ['keys of 10 MB', keysOf(space(10_000_000)), /more than 262144 bytes/],
    ['keys without an end', keysOf(endless(space(DOCUMENT_MAX_BYTES / 4), 0)), /more than 262144 bytes/],
    ['slow keys', keysOf(endless(space(1), 100)), TIMED_OUT],
    ['compressed keys', keysOf(Bun.gzipSync(space(10_000_000)), { headers: { 'content-encoding': 'gzip' } }), /JSON/],
  ])('are not taken from %s', async (_, documents, reason) => {
    await using issuer = await startIssuer()
    for (const [path, answer] of Object.entries(documents(issuer))) issuer.state.answers.set(path, answer)
    await using service = await startAt(issuer, { app: deadlinesFor(reason) })

    expect([await service.code(await issuer.token()), await service.code()]).toEqual([50303, 200])
    expect(service.warnings()).toEqual([expect.stringMatching(reason)])
    expect(issuer.state.requests).not.toContain('/evil')
  })

  test.skipIf(lacks(OPENSSL))('are not taken from a host with a certificate that it has signed itself', async () => {
    using folder = makeFolder()
    await using issuer = await startIssuer({ tls: await makeCertificate(folder.path, 'provider') })
    await using service = await startAt(issuer)

    expect(await service.code(await issuer.token())).toBe(50303)
    expect(service.warnings()).toEqual([expect.stringMatching(/certificate/i)])
  })

  const padded = (bytes: number, keys: readonly object[] = []) => JSON.stringify({ keys }).padEnd(bytes)

  test.concurrent.each([
    ['that nobody writes', (path: string) => void Bun.spawnSync(['mkfifo', path]), TIMED_OUT],
    [
      'of 256 KiB and a byte',
      (path: string) => writeFileSync(path, padded(DOCUMENT_MAX_BYTES + 1)),
      /more than 262144 bytes/,
    ],
    ['that is missing', () => {}, /ENOENT|no such file/i],
  ])(
    'are not taken from a file %s, no JWT waits for it for long, and it is open once at most',
    async (_, make, reason) => {
      await using issuer = await startIssuer()
      using folder = makeFolder()
      const keyFile = join(folder.path, 'jwks.json')
      make(keyFile)
      const jwt = { ...issuer, audience: AUDIENCE, keyFile }
      await using service = await startAt(issuer, { jwt, app: deadlinesFor(reason) })
      const startMs = performance.now()

      expect([await service.code(await issuer.token()), await service.code()]).toEqual([50303, 200])
      expect(performance.now() - startMs).toBeLessThan(HTTP_DEADLINES.keysMs + SLACK_MS)
      service.pass(REFRESH_MIN_MS)
      expect(await service.code(await issuer.token())).toBe(50303)
      expect(service.warnings()).toEqual(Array(2).fill(expect.stringMatching(reason)))
      expect(countOpen(process.pid, keyFile)).toBeLessThanOrEqual(1)
    },
  )

  test('come from a file, which the server reads again', async () => {
    await using issuer = await startIssuer()
    using folder = makeFolder()
    const keyFile = join(folder.path, 'jwks.json')
    const next = await makeKey('ES256', 'key 2')
    writeFileSync(keyFile, JSON.stringify({ keys: issuer.state.keys }))
    const jwt = { issuer: 'https://kubernetes.example.org', audience: AUDIENCE, keyFile }
    await using service = await startAt(issuer, { jwt })
    const claims = { iss: jwt.issuer }
    const [first, second] = [await issuer.token(claims), await issuer.token(claims, {}, next)]
    expect([await service.code(first), await service.code(second)]).toEqual([200, 40102])

    writeFileSync(keyFile, padded(DOCUMENT_MAX_BYTES, [next.jwk]))
    service.pass(REFRESH_MIN_MS)
    expect(await service.code(second)).toBe(200)
    expect(issuer.state.requests).toEqual([])
  })

  test('are read again every 10 minutes, and every 10 seconds after a failure, also if no JWT comes', async () => {
    await using issuer = await startIssuer()
    const next = await makeKey('ES256', 'key 2')
    const tokens = [await issuer.token(), await issuer.token({}, {}, next)] as const
    await using service = await startAt(issuer)
    const reads = (count: number) =>
      until(
        `the keys are read ${count} times`,
        (see) => see(issuer.state.requests).filter((path) => path === '/jwks')[count - 1],
      )
    await reads(1)

    issuer.state.answers.set('/jwks', () => new Response(null, { status: 500 }))
    service.pass(REFRESH_EVERY_MS)
    await reads(2)
    await until('the failure is logged', (see) => see(service.warnings()).length === 1)
    issuer.state.answers.clear()
    issuer.state.keys = [next.jwk]
    service.pass(REFRESH_MIN_MS)
    await reads(3)
    expect(await service.code(tokens[1])).toBe(200)
    expect(await service.code(tokens[0])).toBe(40102)
    expect(issuer.state.requests.filter((path) => path === '/jwks')).toHaveLength(3)
  })

  test('are used as they are if none is for an algorithm that is accepted, and that is logged once', async () => {
    await using issuer = await startIssuer()
    const useless = [await makeKey('ES384'), await makeKey('ES256', 'key 1', { use: 'enc' })].map(({ jwk }) => jwk)
    await using service = await startAt(issuer)
    const codes: number[] = []
    for (const keys of [useless, [], [issuer.key.jwk, { ...issuer.key.jwk, kid: 'key 2' }, ...useless]]) {
      issuer.state.keys = keys
      service.pass(REFRESH_EVERY_MS)
      codes.push(await service.code(await issuer.token()))
    }

    expect(codes).toEqual([40102, 40102, 200])
    expect(service.warnings()).toEqual(['the identity provider has no key that can be used, so JWTs are refused'])
  })

  test('are all tried that may have signed a JWT, up to CANDIDATES_MAX, while broken ones are skipped, and both is logged once', async () => {
    await using issuer = await startIssuer()
    await using service = await startAt(issuer)
    const { key } = issuer
    const others = await Promise.all(Array.from({ length: CANDIDATES_MAX }, () => makeKey('ES256')))
    const [[other = key, ...rest], mallory] = [others, await makeKey('ES256')]
    const nameless = [other, key].map(({ jwk: { kid, ...jwk } }) => jwk)
    const broken = [
      null,
      'x',
      [],
      { ...key.jwk, x: 'AA' },
      { ...key.jwk, kid: 'x', d: 'AA' },
      { kty: 'RSA', alg: 'RS256' },
    ]
    const useless = [
      {},
      { kty: 'oct', k: 'AA' },
      (await makeKey('ES384', 'x')).jwk,
      { ...key.jwk, use: 'enc', x: 'AA' },
    ]
    const jwks = (...keys: readonly IssuerKey[]) => keys.map(({ jwk }) => jwk)
    const rows: readonly (readonly [readonly unknown[], object, number])[] = [
      [jwks(other, key), {}, 200],
      [jwks(key, key), {}, 200],
      [nameless, {}, 200],
      [nameless, { kid: undefined }, 200],
      [[other.jwk, { ...key.jwk, kid: 'key 2' }], { kid: undefined }, 200],
      [[other.jwk, { ...key.jwk, kid: 'key 2' }], {}, 40102],
      [[...useless, key.jwk], {}, 200],
      [jwks(...rest, key), {}, 200],
      [jwks(...others), {}, 40102],
      [jwks(key, ...others), {}, 40102],
      [jwks(...others, key), {}, 40102],
      ...broken.map((each) => [[each, key.jwk], {}, 200] as const),
    ]

    for (const [index, [keys, header, code]] of rows.entries()) {
      Object.assign(issuer.state, { keys })
      service.pass(REFRESH_MIN_MS)
      // A JWT with an unknown key makes the server read the keys.
      expect(await service.code(await issuer.token({}, { kid: 'nobody' }, mallory))).toBe(40102)
      const tokens = [await issuer.token({ jti: `${index}` }, header), await issuer.token({}, header, mallory)]
      expect([index, ...(await Promise.all(tokens.map(service.code)))]).toEqual([index, code, 40102])
    }
    expect(service.warnings()).toEqual([
      'a JWT was refused, because too many keys match it',
      'the identity provider has a broken key, which is skipped',
    ])
  })

  test('end a list without a limit with its JWT', async () => {
    await using issuer = await startIssuer()
    const token = await issuer.token({ exp: Math.floor(Date.now() / 1000) + 100 })
    let pass = (_ms: number) => {}
    const overrideStore = (store: Store): Partial<Store> => ({
      async listPlants(user, range) {
        const page = await store.listPlants(user, range)
        pass(200_000)
        return page
      },
    })
    await using service = await startAt(issuer, { overrideStore })
    for (let id = 0; id < 12; id++) await service.create({ id, name: 'x'.repeat(60_000) }, { token })
    pass = service.pass

    // The stream ends with an error that says nothing.
    expect(await rejectionOf(service.list('', { token }))).toEqual({ reason: undefined })
    expect(service.warnings()).toHaveLength(1)
    expect(await service.code(token)).toBe(40102)
  })

  test.each(['POST', 'PUT'])(
    'refuse a %s whose body arrives after the end of its JWT, and accept one whose user was made or deleted meanwhile',
    async (method) => {
      await using issuer = await startIssuer()
      const exp = Math.floor(Date.now() / 1000) + 100
      const [ada, bob] = [await issuer.token({ exp }), await issuer.token({ exp, sub: 'bob' })]
      await using service = await startAt(issuer)
      const createLater = (id: number, token: string, before: () => unknown) => {
        const body = new ReadableStream({
          async pull(controller) {
            await before()
            service.pass(100)
            controller.enqueue(Buffer.from(JSON.stringify({ id, name: 'Fern' })))
            controller.close()
          },
        })
        const headers = { 'content-type': 'application/json' }
        return service.request(method, method === 'PUT' ? `/plants/${id}` : '/plants', { token, headers, body })
      }
      const status = method === 'PUT' ? 201 : 200

      const meanwhile = await createLater(1, ada, () => service.create({ id: 2, name: 'Ivy' }, { token: ada }))
      expect(meanwhile).toMatchObject({ status })
      expect(await service.names(ada)).toEqual(['Fern', 'Ivy'])
      const anew = await createLater(1, ada, () => service.store.deleteUser(providerUserName(issuer.issuer, 'ada')))
      expect(anew).toMatchObject({ status })
      expect(await service.names(ada)).toEqual(['Fern'])
      for (const token of [ada, bob]) {
        const late = await createLater(3, token, () => service.pass(200_000))
        expect([late.status, late.body.error]).toEqual([401, 40102])
        service.pass(-200_000)
      }
      expect(await service.names(ada)).toEqual(['Fern'])
    },
  )

  test('let a create and a put make the user anew who was deleted after the JWT was checked', async () => {
    await using issuer = await startIssuer()
    const token = await issuer.token()
    const names = new Set(['Ivy', 'Oak'])
    const deleteFirst = async (store: Store, { name }: NewPlant) => {
      if (names.delete(name)) await store.deleteUser(providerUserName(issuer.issuer, 'ada'))
    }
    const overrideStore = (store: Store): Partial<Store> => ({
      createPlant: (owner, plant) => deleteFirst(store, plant).then(() => store.createPlant(owner, plant)),
      putPlant: (owner, plant, condition) =>
        deleteFirst(store, plant).then(() => store.putPlant(owner, plant, condition)),
    })
    await using service = await startAt(issuer, { overrideStore })
    await service.create({ id: 1, name: 'Fern' }, { token })

    expect(await service.create({ id: 1, name: 'Ivy' }, { token })).toMatchObject({ status: 200 })
    expect(await service.names(token)).toEqual(['Ivy'])
    expect(await service.put(2, { name: 'Oak' }, { token })).toMatchObject({ status: 201 })
    expect(await service.names(token)).toEqual(['Oak'])
  })
})
