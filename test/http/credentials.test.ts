import { describe, expect, test } from 'bun:test'
import { hashToken, TOKEN_RANDOM_BYTES, tokenText } from '../../src/domain/token.ts'
import { until } from '../support/until.ts'
import { type Answer, bytesOf, type Service, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

const MISSING = {
  status: 401,
  challenge: 'Bearer realm="plantstore"',
  body: { error: 40101, message: 'This needs a token: send the header Authorization: Bearer <ACCESS_TOKEN>.' },
}
const INVALID = {
  status: 401,
  challenge: 'Bearer realm="plantstore", error="invalid_token"',
  body: { error: 40102, message: 'The token is not valid (any more): ask the operator for a new one.' },
}
const seen = ({ status, headers, body }: Answer) => ({ status, challenge: headers.get('www-authenticate'), body })

/** One request to each operation, with whatever credentials the headers hold. */
const toEachOperation = async (service: Service, headers: Record<string, string>) => [
  await service.create({ id: 9, name: 'Intruder' }, { token: null, headers }),
  await service.list('', { token: null, headers }),
  await service.list('?limit=1', { token: null, headers }),
  await service.get(1, { token: null, headers }),
  await service.delete(1, { token: null, headers }),
]

/** Values of `Authorization` with another scheme, as RFC 9110 §11.4 writes them. */
const otherSchemes = (token: string): readonly string[] => [
  ...[
    'Basic bWU6c2VjcmV0',
    'Basic',
    'Digest username="me", realm="a, \\"b\\" c", uri = "/plants",qop=auth, nc=00000001',
  ],
  ...[token, `Token ${token}`, `Bearer${token}`, `Bearers ${token}`, "!#$%&'*+-.^_`|~09aZ x=y"],
]

/** Values of `Authorization` without a valid token. Several lines arrive joined by a comma. */
const malformed = (token: string): readonly string[] => [
  ...['Bearer', 'Bearer a="b", c=d', 'Basic bWU6c2VjcmV0, Basic bWU6c2VjcmV0', '=x', 'Basic,', 'Basic bWU6 c2VjcmV0'],
  ...[`Digest a="b", Bearer ${token}`, `Bearer ${token}, Digest a="b"`, `Bearer ${token}, Bearer ${token}`],
  ...[
    `Bearer\t${token}`,
    `Bearer: ${token}`,
    `Bearer "${token}"`,
    `Bearer Bearer ${token}`,
    `Bearer ${token} ${token}`,
  ],
  ...[`Bearer ${token},`, `Bearer ${token}; scope=write`, `Bearer ${token.slice(0, -1)}`, `Bearer ${token}0`],
  ...[`Bearer ${token.toUpperCase()}`, `Bearer ${misspell(token)}`, `Bearer ${unknownToken()}`, 'Bearer \u00e9'],
  ...[`Bearer ${hashToken(token).toHex()}`, 'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9.', "Bearer ' or 1=1 --"],
  ...[`Bearer ${'A'.repeat(4000)}`, `Bearer${' '.repeat(4000)}.`],
]

const misspell = (token: string) => token.slice(0, 20) + (token[20] === 'A' ? 'B' : 'A') + token.slice(21)
const unknownToken = () => tokenText(crypto.getRandomValues(new Uint8Array(TOKEN_RANDOM_BYTES)))

describe.each(TRANSPORTS)('credentials, $name', (transport) => {
  test('are answered the same if there are none or others than Bearer, without an error in the challenge', async () => {
    await using service = await startService(transport)

    const none = await toEachOperation(service, {})

    for (const answer of none) expect(seen(answer)).toEqual(MISSING)
    expect(new Set(none.map(bytesOf)).size).toBe(1)
    for (const authorization of otherSchemes(service.token)) {
      const answers = await toEachOperation(service, { authorization })
      expect([authorization, ...answers.map(bytesOf)]).toEqual([authorization, ...none.map(bytesOf)])
    }
    expect(await service.names()).toEqual([])
  })

  test('are answered with the same bytes if they are malformed, unknown, expired, revoked or of a blocked user', async () => {
    await using service = await startService(transport)
    // From here on the token is in the token cache, and the list in the list cache.
    await service.create({ id: 1, name: 'Fern' })
    await service.list('?limit=1')
    const expired = await service.createToken({ expiresAtMs: Date.now() - 1 })
    const revoked = await service.createToken()
    await service.store.revokeTokens({ id: revoked.id }, Date.now())
    const blocked = await service.createToken({ user: 'blocked' })
    await service.store.setUserBlock('blocked', Date.now())
    const refused = [expired, revoked, blocked].map(({ text }) => `Bearer ${text}`)
    const credentials = [...malformed(service.token), ...refused]

    const bytes = new Set<string>()
    for (const authorization of credentials) {
      for (const answer of await toEachOperation(service, { authorization })) {
        expect(seen(answer), authorization).toEqual(INVALID)
        bytes.add(bytesOf(answer))
      }
    }

    expect(bytes.size).toBe(1)
    expect(await service.names()).toEqual(['Fern'])
  })

  test('that are missing or invalid are answered to HEAD as to GET', async () => {
    await using service = await startService(transport)

    const missing = await service.request('HEAD', '/plants', { token: null })
    const invalid = await service.request('HEAD', '/plants?limit=1', { token: 'nobody' })

    expect([missing, invalid].map(({ status, headers }) => [status, headers.get('www-authenticate')])).toEqual([
      [401, MISSING.challenge],
      [401, INVALID.challenge],
    ])
  })

  test.each([
    ['do not count', {}, MISSING],
    ['do not mend an invalid header', { authorization: 'Bearer nobody' }, INVALID],
  ])('in the query string, a cookie, another header or the body %s', async (_, headers, expected) => {
    await using service = await startService(transport)
    const { token } = service
    const cookie = `access_token=${token}; token=${token}; Authorization=${token}`
    const elsewhere = { token: null, headers: { ...headers, cookie } }
    const others = { ...headers, 'x-access-token': token, 'proxy-authorization': `Bearer ${token}` }

    const answers = [
      await service.list(`?access_token=${token}`, elsewhere),
      await service.list(`?token=${token}&limit=1`, elsewhere),
      await service.list(`?Authorization=Bearer%20${token}`, elsewhere),
      await service.list(`?Bearer=${token}`, elsewhere),
      await service.list(`?%EF%BF%BD=${token}&%ED%A0%80=${token}`, elsewhere),
      await service.delete(`1?access_token=${token}`, elsewhere),
      await service.create({ id: 1, name: 'Fern', access_token: token, token }, elsewhere),
      await service.request('POST', `/plants?access_token=${token}`, {
        ...elsewhere,
        headers: { ...elsewhere.headers, 'content-type': 'application/x-www-form-urlencoded' },
        body: `access_token=${token}`,
      }),
      await service.list('', { token: null, headers: others }),
    ]

    for (const answer of answers) expect(seen(answer)).toEqual(expected)
    expect(await service.names()).toEqual([])
  })

  test('are valid until the token expires', async () => {
    await using service = await startService(transport)
    const later = await service.createToken({ expiresAtMs: Date.now() + 3_600_000 })
    // Long enough to be used once, also on a machine that is busy.
    let answer: Answer | undefined
    let soon = service.token
    for (let lifetimeMs = 200; answer?.status !== 200; lifetimeMs *= 2) {
      soon = (await service.createToken({ expiresAtMs: Date.now() + lifetimeMs })).text
      answer = await service.list('?limit=1', { token: soon })
    }
    await until('the token ended', async () => (await service.list('?limit=1', { token: soon })).status !== 200)

    const headers = { authorization: `Bearer ${soon}` }
    for (const refused of await toEachOperation(service, headers)) expect(seen(refused)).toEqual(INVALID)
    expect((await service.list('', { token: later.text })).status).toBe(200)
  })
})
