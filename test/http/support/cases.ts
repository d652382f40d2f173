import { expect } from 'bun:test'
import {
  type Answer,
  type RequestOptions,
  type Service,
  type ServiceOptions,
  startService,
  type Transport,
} from './service.ts'

const JSON_BODY = { 'content-type': 'application/json' }
const MAX_BODY_BYTES = 100

/** What every answer has. The id is another one each time. */
const COMMON = { 'x-request-id': 'ID', 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' }
const JSON_TYPE = { 'content-type': 'application/json' }
const TAGGED = { etag: 'ETAG', 'cache-control': 'private, no-cache' }

/** A request and what its answer has besides: the code, where it is an error, and further headers. */
export interface Case {
  readonly send: readonly [method: string, path: string, options?: RequestOptions]
  readonly status: number
  readonly error?: number
  readonly headers?: Readonly<Record<string, string>>
}

const post = (body: string): RequestOptions => ({ headers: JSON_BODY, body })

/** Every endpoint, and every error that a request alone can bring about. User `me` has the plants 1 and 2. */
export const cases = (readToken: string, etag: string): Readonly<Record<string, Case>> => ({
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
    headers: { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': 'POLICY' },
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
  'an encoded body': {
    send: ['POST', '/plants', { headers: { ...JSON_BODY, 'content-encoding': 'gzip' }, body: '{}' }],
    status: 415,
    error: 41502,
    headers: { 'accept-encoding': 'identity' },
  },
})

/** A service with those plants, and all cases by name. */
export async function startWithCases(transport: Transport, options: ServiceOptions = {}) {
  const service = await startService(transport, { maxBodyBytes: MAX_BODY_BYTES, ...options })
  await service.create({ id: 1, name: 'Fern' })
  await service.create({ id: 2, name: 'Ivy', tag: 'evergreen' })
  const { text: readToken } = await service.createToken({ scope: 'read' })
  const etag = (await service.list('?limit=1')).headers.get('etag') ?? ''
  return { service, readToken, all: Object.entries(cases(readToken, etag)) }
}

interface Expectation {
  /** Headers that every request has besides its own. */
  readonly sent?: Readonly<Record<string, string>>
  /** Headers that every answer to a method has besides its own. */
  readonly besides?: (method: string) => Readonly<Record<string, string>>
}

/** Expects of every case its status, its headers, and no other header. */
export async function expectHeaders(
  service: Service,
  all: readonly (readonly [name: string, Case])[],
  { sent = {}, besides = () => ({}) }: Expectation = {},
): Promise<void> {
  for (const [name, { send, status, error, headers = {} }] of all) {
    const [method, path, options = {}] = send
    const answer = await service.request(method, path, { ...options, headers: { ...options.headers, ...sent } })

    expect({ name, status: answer.status, headers: ownHeaders(answer) }).toEqual({
      name,
      status,
      headers: { ...COMMON, ...(error !== undefined && JSON_TYPE), ...headers, ...besides(method) },
    })
  }
}

/** All headers that are ours, with a stand-in for what is another value each time. */
function ownHeaders({ headers }: Answer): Record<string, string> {
  const own = Object.fromEntries(headers)
  for (const name of ['date', 'content-length', 'transfer-encoding', 'connection', 'keep-alive']) delete own[name]
  if (/^[A-Za-z0-9._-]{1,64}$/.test(own['x-request-id'] ?? '')) own['x-request-id'] = 'ID'
  if (own['content-security-policy']?.startsWith("default-src 'none'; ")) own['content-security-policy'] = 'POLICY'
  if (/^"[\x21\x23-\x7e]+"$/.test(own.etag ?? '')) own.etag = 'ETAG'
  return own
}
