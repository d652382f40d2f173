import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { addressesIn } from './pages.ts'
import { type Answer, type RequestOptions, type Service, startService } from './service.ts'
import type { ServiceOptions, Transport } from './transports.ts'

const MAX_BODY_BYTES = 100

/** The headers of every answer. The id and the time differ each time. */
const COMMON = { date: 'DATE', 'x-request-id': 'ID', 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' }
const JSON_TYPE = { 'content-type': 'application/json' }
/** The headers of a kind of answer. */
const KINDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  json: JSON_TYPE,
  tagged: { etag: 'ETAG', 'cache-control': 'private, no-cache' },
  page: {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': 'POLICY',
    'referrer-policy': 'no-referrer',
  },
  asset: {
    'content-type': 'text/javascript;charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'Accept-Encoding',
  },
}

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
  headers: Readonly<Record<string, string>>,
]

/**
 * Every endpoint, and every error that a request alone can bring about, of cases.txt: a request of a token, and its answer with
 * headers and kinds of headers. User `me` has the plants 1 and 2, `etag` is that of a list, and `script` the path of a script.
 */
export function cases(reader: string, etag: string, script: string): readonly Case[] {
  const tokens: Readonly<Record<string, RequestOptions>> = {
    ...{ reader: { token: reader }, nobody: { token: null }, unknown: { token: 'unknown' } },
  }
  const known: Readonly<Record<string, string>> = { etag, script, body: 'x'.repeat(MAX_BODY_BYTES) }
  const text = readFileSync(join(import.meta.dir, 'cases.txt'), 'utf8')
  const filled = text.replace(/\{(etag|script|body)\}/g, (_, name) => known[name] ?? '')
  return [
    ...filled.matchAll(/^(\w+)> (\S+) (\S+)(?: ([^|\n]+?))?((?: \| .*)?)\n {2}(\d+)((?: \{\w+\})*)((?: \| .*)?)$/gm),
  ].map(([lines, who = '', method = '', path = '', body, sent = '', answer, kinds = '', own = '']) => {
    const isTyped = body !== undefined && !sent.includes('- content-type')
    const headers = { ...(isTyped && JSON_TYPE), ...headersIn(sent) }
    // A text would get a type.
    const content = body !== undefined && { body: isTyped ? body : new TextEncoder().encode(body) }
    const expected = [...kinds.matchAll(/\w+/g)].map(([kind]) => KINDS[kind] ?? {})
    const name = lines.slice(0, lines.indexOf('\n'))
    return [
      name,
      method,
      path,
      { ...tokens[who], headers, ...content },
      Number(answer),
      Object.assign({}, ...expected, headersIn(own)),
    ]
  })
}

/** The headers in ` | name: value | name: value`. */
const headersIn = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/ \| ([\w-]+): ([^|]*[^| ])/g)].map(([, name = '', value = '']) => [name, value]),
  )

/** Whether an answer is named by the code of an error. */
export const isErrorCode = (answer: number): boolean => answer >= 10_000

/** A service with those plants, and all cases. */
export async function startWithCases(transport: Transport, options: ServiceOptions = {}) {
  const service = await startService(transport, { maxBody: MAX_BODY_BYTES, ...options })
  await service.create({ id: 1, name: 'Fern' })
  await service.create({ id: 2, name: 'Ivy', tag: 'evergreen' })
  const { text: readToken } = await service.createToken({ scope: 'read' })
  const etag = (await service.list('?limit=1')).headers.get('etag') ?? ''
  const page = await service.request('GET', '/', { token: null, headers: { accept: 'text/html' } })
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

/** Expects of every case its status, its headers, and no other header; of an error its code and a sentence, and never a token. */
export async function expectHeaders(
  service: Service,
  all: readonly Case[],
  { sent = {}, besides = () => ({}) }: Expectation = {},
): Promise<void> {
  for (const [name, method, path, options, answer, headers] of all) {
    const seen = await service.request(method, path, { ...options, headers: { ...options.headers, ...sent } })

    const isError = isErrorCode(answer)
    const others = besides(method)
    const vary = [headers.vary, others.vary].filter((value) => value !== undefined).join(', ')
    const error = { error: answer, message: expect.stringMatching(/^[A-Z`].+\.$/) }
    expect({ name, status: seen.status, headers: ownHeaders(seen), ...(isError && { body: seen.body }) }).toEqual({
      name,
      ...(isError && { body: error }),
      status: isError ? Math.floor(answer / 100) : answer,
      headers: { ...COMMON, ...(isError && JSON_TYPE), ...headers, ...others, ...(vary && { vary }) },
    })
    expect(seen.text).not.toContain(options.token ?? service.token)
  }
}

/** All headers that are not the runtime's, with a stand-in for values that differ each time. */
function ownHeaders({ headers }: Answer): Record<string, string> {
  const own = Object.fromEntries(headers)
  for (const name of ['content-length', 'transfer-encoding', 'connection', 'keep-alive']) delete own[name]
  if (Date.parse(own.date ?? '') > 0) own.date = 'DATE'
  if (/^[A-Za-z0-9._-]{1,64}$/.test(own['x-request-id'] ?? '')) own['x-request-id'] = 'ID'
  if (own['content-security-policy']?.startsWith("default-src 'none'; ")) own['content-security-policy'] = 'POLICY'
  if (/^"[\x21\x23-\x7e]+"$/.test(own.etag ?? '')) own.etag = 'ETAG'
  return own
}
