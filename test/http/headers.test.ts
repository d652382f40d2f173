import { describe, expect, test } from 'bun:test'
import { ERRORS } from '../../src/http/errors.ts'
import { type Answer, type RequestOptions, type Service, startService, TRANSPORTS } from '../support/service.ts'

const JSON_BODY = { 'content-type': 'application/json' }
const MAX_BODY_BYTES = 100

/** What every answer has. The id is another one each time. */
const COMMON = { 'x-request-id': 'ID', 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' }
const JSON_TYPE = { 'content-type': 'application/json' }
const TAGGED = { etag: 'ETAG', 'cache-control': 'private, no-cache' }

/** A request and what its answer has besides: the code, where it is an error, and further headers. */
interface Case {
  readonly send: readonly [method: string, path: string, options?: RequestOptions]
  readonly status: number
  readonly error?: number
  readonly headers?: Readonly<Record<string, string>>
}

const post = (body: string): RequestOptions => ({ headers: JSON_BODY, body })

/** Every endpoint, and every error that a request alone can bring about. User `me` has the plants 1 and 2. */
const cases = (readToken: string, etag: string): Readonly<Record<string, Case>> => ({
  create: { send: ['POST', '/plants', post('{"id":3,"name":"Moss"}')], status: 200, headers: JSON_TYPE },
  list: { send: ['GET', '/plants'], status: 200, headers: JSON_TYPE },
  'capped list': { send: ['GET', '/plants?limit=9'], status: 200, headers: { ...JSON_TYPE, ...TAGGED } },
  'capped list with more behind it': {
    send: ['GET', '/plants?limit=1'],
    status: 200,
    headers: { ...JSON_TYPE, ...TAGGED, link: '<?limit=1&after=1>; rel="next"' },
  },
  'list that is known': {
    send: ['GET', '/plants?limit=1', { headers: { 'if-none-match': etag } }],
    status: 304,
    headers: TAGGED,
  },
  'head of a capped list': {
    send: ['HEAD', '/plants?limit=9'],
    status: 200,
    headers: { ...JSON_TYPE, ...TAGGED },
  },
  delete: { send: ['DELETE', '/plants/3'], status: 204 },
  'options of plants': { send: ['OPTIONS', '/plants'], status: 204, headers: { allow: 'GET, HEAD, POST, OPTIONS' } },
  'options of a plant': { send: ['OPTIONS', '/plants/1'], status: 204, headers: { allow: 'DELETE, OPTIONS' } },
  healthz: { send: ['GET', '/healthz', { token: null }], status: 200, headers: JSON_TYPE },
  readyz: { send: ['GET', '/readyz', { token: null }], status: 200, headers: JSON_TYPE },
  document: { send: ['GET', '/openapi.json', { token: null }], status: 200, headers: JSON_TYPE },
  page: {
    send: ['GET', '/docs', { token: null }],
    status: 200,
    headers: { 'content-type': 'text/html; charset=utf8' },
  },
  script: {
    send: ['GET', '/docs/scalar.js', { token: null }],
    status: 200,
    headers: { 'content-type': 'text/javascript' },
  },

  'not JSON': { send: ['POST', '/plants', post('{')], status: 400, error: 40001 },
  'no plant': { send: ['POST', '/plants', post('[]')], status: 400, error: 40002 },
  'a field of the wrong type': { send: ['POST', '/plants', post('{"id":"1","name":"x"}')], status: 400, error: 40002 },
  'bad limit': { send: ['GET', '/plants?limit=x'], status: 400, error: 40003 },
  'bad after': { send: ['GET', '/plants?after=x'], status: 400, error: 40003 },
  'bad id': { send: ['DELETE', '/plants/x'], status: 400, error: 40004 },
  'two hosts': { send: ['GET', '/plants', { headers: { host: 'x, y' } }], status: 400, error: 40005 },
  'no token': {
    send: ['GET', '/plants', { token: null }],
    status: 401,
    error: 40101,
    headers: { 'www-authenticate': 'Bearer realm="plantstore"' },
  },
  'invalid token': {
    send: ['GET', '/plants', { token: 'nobody' }],
    status: 401,
    error: 40102,
    headers: { 'www-authenticate': 'Bearer realm="plantstore", error="invalid_token"' },
  },
  'insufficient scope': {
    send: ['DELETE', '/plants/1', { token: readToken }],
    status: 403,
    error: 40301,
    headers: { 'www-authenticate': 'Bearer realm="plantstore", error="insufficient_scope", scope="write"' },
  },
  'unknown path': { send: ['GET', '/nothing'], status: 404, error: 40401 },
  'options of an unknown path': { send: ['OPTIONS', '/nothing'], status: 404, error: 40401 },
  'no such plant': { send: ['DELETE', '/plants/7'], status: 404, error: 40402 },
  'another method': {
    send: ['PUT', '/plants'],
    status: 405,
    error: 40501,
    headers: { allow: 'GET, HEAD, POST, OPTIONS' },
  },
  'a plant that is there': { send: ['POST', '/plants', post('{"id":1,"name":"Ivy"}')], status: 409, error: 40901 },
  'a large body': { send: ['POST', '/plants', post(' '.repeat(MAX_BODY_BYTES + 1))], status: 413, error: 41301 },
  'no content type': { send: ['POST', '/plants', { body: new Uint8Array([0x7b, 0x7d]) }], status: 415, error: 41501 },
})

/** Those of the server's own making have suites of their own: bug.test.ts, store-faults.test.ts and rate-limit.test.ts. */
const BROUGHT_ABOUT_ELSEWHERE = [42901, 50000, 50301, 50302, 50303]

/** All headers that are ours, with a stand-in for what is another value each time. */
function ownHeaders({ headers }: Answer): Record<string, string> {
  const own = Object.fromEntries(headers)
  for (const name of ['date', 'content-length', 'transfer-encoding', 'connection', 'keep-alive']) delete own[name]
  if (/^[A-Za-z0-9._-]{1,64}$/.test(own['x-request-id'] ?? '')) own['x-request-id'] = 'ID'
  if (/^"[\x21\x23-\x7e]+"$/.test(own.etag ?? '')) own.etag = 'ETAG'
  return own
}

const startWithPlants = async (...args: Parameters<typeof startService>) => {
  const service = await startService(...args)
  await service.create({ id: 1, name: 'Fern' })
  await service.create({ id: 2, name: 'Ivy', tag: 'evergreen' })
  return service
}

const etagOfFirst = async (service: Service) => (await service.list('?limit=1')).headers.get('etag') ?? ''

describe.each(TRANSPORTS)('every answer, $name', (transport) => {
  test('has the common headers, those that belong to it, and no other', async () => {
    await using service = await startWithPlants(transport, { maxBodyBytes: MAX_BODY_BYTES })
    const { text: readToken } = await service.createToken({ scope: 'read' })

    for (const [name, { send, status, error, headers = {} }] of Object.entries(
      cases(readToken, await etagOfFirst(service)),
    )) {
      const answer = await service.request(...send)

      expect({ name, status: answer.status, headers: ownHeaders(answer) }).toEqual({
        name,
        status,
        headers: { ...COMMON, ...(error !== undefined && JSON_TYPE), ...headers },
      })
    }
  })

  test('has, where it is an error, the one shape of errors', async () => {
    await using service = await startWithPlants(transport, { maxBodyBytes: MAX_BODY_BYTES })
    const { text: readToken } = await service.createToken({ scope: 'read' })

    for (const [name, { send, status, error }] of Object.entries(cases(readToken, await etagOfFirst(service)))) {
      if (error === undefined) continue
      const answer = await service.request(...send)

      expect({ name, ...answer.body }).toEqual({ name, error, message: expect.stringMatching(/^[A-Z`].+\.$/) })
      expect([name, Math.floor(answer.body.error / 100)]).toEqual([name, status])
      expect(answer.text).not.toContain(service.token)
      expect(answer.text).not.toContain(readToken)
    }
  })

  test('names the request: a fresh id each time', async () => {
    await using service = await startService(transport)
    const ids = new Set<string | null>()

    for (const path of ['/plants', '/nothing', '/healthz', '/plants', '/nothing', '/healthz']) {
      ids.add((await service.request('GET', path)).headers.get('x-request-id'))
    }

    expect(ids.size).toBe(6)
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9._-]{16,64}$/)
  })

  test("takes the client's own request id where it is harmless", async () => {
    await using service = await startService(transport)

    for (const id of [
      'a',
      '-',
      '.',
      '_',
      '7',
      'A.b-c_9',
      'x'.repeat(64),
      'plst',
      'plst-1',
      'xplst_1',
      'PLST_1',
      'pls_t',
    ]) {
      const headers = { 'x-request-id': id }

      expect((await service.list('', { headers })).headers.get('x-request-id')).toBe(id)
      expect((await service.request('GET', '/nothing', { token: null, headers })).headers.get('x-request-id')).toBe(id)
    }
  })

  test("refuses the client's own request id where it is not", async () => {
    await using service = await startService(transport)
    const refused = [
      '',
      'x'.repeat(65),
      'a b',
      'a,b',
      'a/b',
      'a:b',
      'a=b',
      '"a"',
      '{}',
      '<a>',
      "a'b",
      '%41',
      '\u00e9',
      'a\tb',
      'plst_',
      'plst_a',
    ]

    for (const id of [...refused, service.token]) {
      const answer = await service.list('', { headers: { 'x-request-id': id } })

      expect({ id, status: answer.status, own: answer.headers.get('x-request-id') }).toEqual({
        id,
        status: 200,
        own: expect.stringMatching(/^[0-9a-f-]{36}$/),
      })
    }
    expect(service.logs()).not.toContain(service.token)
  })

  test('gives back a request id that is given twice to nobody', async () => {
    await using service = await startService(transport)

    const { headers } = await service.list('', { headers: { 'x-request-id': 'one, two' } })

    expect(headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  })
})

test('every error code is brought about, here or in the suites of faults', () => {
  const here = Object.values(cases('', '')).flatMap(({ error }) => error ?? [])

  expect([...new Set([...here, ...BROUGHT_ABOUT_ELSEWHERE])].sort()).toEqual(
    Object.values(ERRORS)
      .map(({ code }) => code)
      .sort(),
  )
})
