import { expect } from 'bun:test'
import { post } from './answers.ts'
import { addressesIn } from './pages.ts'
import { type Answer, type RequestOptions, type Service, startService } from './service.ts'
import type { ServiceOptions, Transport } from './transports.ts'

const MAX_BODY_BYTES = 100

/** The headers of every answer. The id differs each time. */
const COMMON = { 'x-request-id': 'ID', 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' }
const JSON_TYPE = { 'content-type': 'application/json' }
const TAGGED = { etag: 'ETAG', 'cache-control': 'private, no-cache' }

/**
 * A request, the status of its answer or the code of its error, and the headers that the answer has besides the common ones
 * and the type of an error.
 */
export type Case = readonly [
  name: string,
  method: string,
  path: string,
  options: RequestOptions,
  answer: number,
  headers?: Readonly<Record<string, string>>,
]

const challenge = (parameters: string) => ({ 'www-authenticate': `Bearer realm="plantstore"${parameters}` })
const STRANGER = { token: null }
const HTML = 'text/html'
const PAGE = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': 'POLICY',
  'referrer-policy': 'no-referrer',
}
const ASSET = {
  'content-type': 'text/javascript;charset=utf-8',
  'cache-control': 'public, max-age=31536000, immutable',
  vary: 'Accept-Encoding',
}

/**
 * Every endpoint, and every error that a request alone can bring about. User `me` has the plants 1 and 2, and `script` is the path of
 * a script of a page.
 */
export const cases = (readToken: string, etag: string, script: string): readonly Case[] => [
  ['create', 'POST', '/plants', post('{"id":3,"name":"Moss"}'), 200, JSON_TYPE],
  ['list', 'GET', '/plants', {}, 200, JSON_TYPE],
  ['capped list', 'GET', '/plants?limit=9', {}, 200, { ...JSON_TYPE, ...TAGGED }],
  [
    'capped list with more behind it',
    'GET',
    '/plants?limit=1',
    {},
    200,
    { ...JSON_TYPE, ...TAGGED, link: '<?limit=1&after=1>; rel="next"' },
  ],
  ['list that is known', 'GET', '/plants?limit=1', { headers: { 'if-none-match': etag } }, 304, TAGGED],
  ['head of a capped list', 'HEAD', '/plants?limit=9', {}, 200, { ...JSON_TYPE, ...TAGGED }],
  ['get', 'GET', '/plants/1', {}, 200, { ...JSON_TYPE, ...TAGGED }],
  ['head of a plant', 'HEAD', '/plants/1', {}, 200, { ...JSON_TYPE, ...TAGGED }],
  ['plant that is known', 'GET', '/plants/1', { headers: { 'if-none-match': '*' } }, 304, TAGGED],
  ['delete', 'DELETE', '/plants/3', {}, 204],
  ['options of plants', 'OPTIONS', '/plants', {}, 204, { allow: 'GET, HEAD, POST, OPTIONS' }],
  ['options of a script', 'OPTIONS', script, STRANGER, 204, { allow: 'GET, HEAD, OPTIONS' }],
  ['another method on a script', 'POST', script, STRANGER, 40501, { allow: 'GET, HEAD, OPTIONS' }],
  ['options of a plant', 'OPTIONS', '/plants/1', {}, 204, { allow: 'GET, HEAD, DELETE, OPTIONS' }],
  ...['GET', 'HEAD'].flatMap((method): readonly Case[] => [
    [`${method} of healthz`, method, '/healthz', STRANGER, 200, JSON_TYPE],
    [`${method} of readyz`, method, '/readyz', STRANGER, 200, JSON_TYPE],
    [`${method} of the document`, method, '/openapi.json', STRANGER, 200, JSON_TYPE],
    [`${method} of the documentation`, method, '/docs', STRANGER, 200, PAGE],
  ]),
  ['page', 'GET', '/', { ...STRANGER, headers: { accept: HTML } }, 200, { ...PAGE, vary: 'Accept' }],
  ['script', 'GET', script, { ...STRANGER, headers: { 'accept-encoding': 'identity' } }, 200, ASSET],

  ['not JSON', 'POST', '/plants', post('{'), 40001],
  ['no plant', 'POST', '/plants', post('[]'), 40002],
  ['a field of the wrong type', 'POST', '/plants', post('{"id":"1","name":"x"}'), 40002],
  ['bad limit', 'GET', '/plants?limit=x', {}, 40003],
  ['bad after', 'GET', '/plants?after=x', {}, 40003],
  ['bad id', 'DELETE', '/plants/x', {}, 40004],
  ['two hosts', 'GET', '/plants', { headers: { host: 'x, y' } }, 40005],
  ['no token', 'GET', '/plants', STRANGER, 40101, challenge('')],
  ['invalid token', 'GET', '/plants', { token: 'nobody' }, 40102, challenge(', error="invalid_token"')],
  [
    'insufficient scope',
    'DELETE',
    '/plants/1',
    { token: readToken },
    40301,
    challenge(', error="insufficient_scope", scope="write"'),
  ],
  ['unknown path', 'GET', '/nothing', {}, 40401],
  ['page for a program', 'GET', '/', STRANGER, 40401, { vary: 'Accept' }],
  ['unknown asset', 'GET', '/assets/nothing.js', STRANGER, 40401],
  ['options of an unknown path', 'OPTIONS', '/nothing', {}, 40401],
  ['bad include', 'GET', '/plants?include=x', {}, 40003],
  ['no such plant', 'DELETE', '/plants/7', {}, 40402],
  ['a plant to get that is not there', 'GET', '/plants/7', {}, 40402],
  ['another ETag', 'DELETE', '/plants/1', { headers: { 'if-match': '"x"' } }, 41201],
  ['another method', 'PUT', '/plants', {}, 40501, { allow: 'GET, HEAD, POST, OPTIONS' }],
  ['a plant that is there', 'POST', '/plants', post('{"id":1,"name":"Ivy"}'), 40901],
  ['a large body', 'POST', '/plants', post(`{"id":3,"name":"${'x'.repeat(MAX_BODY_BYTES)}"}`), 41301],
  ['no content type', 'POST', '/plants', { body: new Uint8Array([0x7b, 0x7d]) }, 41501],
  [
    'an encoded body',
    'POST',
    '/plants',
    post('{}', { 'content-encoding': 'gzip' }),
    41502,
    { 'accept-encoding': 'identity' },
  ],
]

/** Whether an answer is named by the code of an error. */
export const isErrorCode = (answer: number): boolean => answer >= 10_000

/** A service with those plants, and all cases. */
export async function startWithCases(transport: Transport, options: ServiceOptions = {}) {
  const service = await startService(transport, { maxBodyBytes: MAX_BODY_BYTES, ...options })
  await service.create({ id: 1, name: 'Fern' })
  await service.create({ id: 2, name: 'Ivy', tag: 'evergreen' })
  const { text: readToken } = await service.createToken({ scope: 'read' })
  const etag = (await service.list('?limit=1')).headers.get('etag') ?? ''
  const page = await service.request('GET', '/', { token: null, headers: { accept: HTML } })
  return {
    service,
    readToken,
    all: cases(readToken, etag, `/${addressesIn(page.text).find((address) => address.endsWith('.js'))}`),
  }
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
  all: readonly Case[],
  { sent = {}, besides = () => ({}) }: Expectation = {},
): Promise<void> {
  for (const [name, method, path, options, answer, headers = {}] of all) {
    const seen = await service.request(method, path, { ...options, headers: { ...options.headers, ...sent } })

    const isError = isErrorCode(answer)
    const others = besides(method)
    const vary = [headers.vary, others.vary].filter((value) => value !== undefined).join(', ')
    expect({ name, status: seen.status, headers: ownHeaders(seen) }).toEqual({
      name,
      status: isError ? Math.floor(answer / 100) : answer,
      headers: { ...COMMON, ...(isError && JSON_TYPE), ...headers, ...others, ...(vary && { vary }) },
    })
  }
}

/** All headers that are not the runtime's, with a stand-in for values that differ each time. */
function ownHeaders({ headers }: Answer): Record<string, string> {
  const own = Object.fromEntries(headers)
  for (const name of ['date', 'content-length', 'transfer-encoding', 'connection', 'keep-alive']) delete own[name]
  if (/^[A-Za-z0-9._-]{1,64}$/.test(own['x-request-id'] ?? '')) own['x-request-id'] = 'ID'
  if (own['content-security-policy']?.startsWith("default-src 'none'; ")) own['content-security-policy'] = 'POLICY'
  if (/^"[\x21\x23-\x7e]+"$/.test(own.etag ?? '')) own.etag = 'ETAG'
  return own
}
