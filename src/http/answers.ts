// Tested in test/http/headers.test.ts.
import { type Static, Type } from '@sinclair/typebox'
import { describeFields } from '../domain/plant.ts'
import type { ErrorKind } from '../error.ts'
import { matchesTag } from './etag.ts'

/** The media type of every body of this API (RFC 8259 §11: no charset parameter). */
export const JSON_TYPE = 'application/json'

/** Whether clients may store an answer (RFC 9111): one with an `ETag`, and any other. */
export type CacheControl = 'private, no-cache' | 'no-store'

/** The headers of answers with a JSON body. To copy them from one `Headers` costs a third of a new object for each answer. */
export const jsonHeaders = (cacheControl: CacheControl): Headers =>
  new Headers({ 'content-type': JSON_TYPE, 'x-content-type-options': 'nosniff', 'cache-control': cacheControl })

const HEADERS = jsonHeaders('no-store')
/** The heads of successes with JSON. One object for all answers, because a new one for each would cost 70 ns. */
export const SUCCESS = { headers: HEADERS }
export const CREATED = { status: 201, headers: HEADERS }

const BODY_BYTES = Symbol('bodyBytes')

interface SizedResponse extends Response {
  [BODY_BYTES]?: number
}

/** An answer of which `bodyBytesOf` knows the size, as the runtime does not. The body is JSON unless `init` says otherwise. */
export function respond(
  body: string | ArrayBuffer | Uint8Array<ArrayBuffer> | Blob,
  init: ResponseInit = SUCCESS,
  bytes = body instanceof Blob ? body.size : Buffer.byteLength(body),
): Response {
  const response: SizedResponse = new Response(body, init)
  response[BODY_BYTES] = bytes
  return response
}

/** Ends a connection without an answer, because a body has not ended. The log and the metrics have 408 (RFC 9110 §15.5.9). */
// With an error as its argument, the runtime would print it.
export const endUnanswered = () => new Response(new ReadableStream({ pull: (it) => it.error() }), { status: 408 })

/** The bytes of the body of an answer: 0 if it has none, or is a stream. */
export const bodyBytesOf = (response: SizedResponse): number => response[BODY_BYTES] ?? 0

interface ErrorEntry {
  /** The HTTP status times 100, plus a number. Never changes its meaning. */
  readonly code: number
  /** When the server answers this: a row of the table in docs/reference/api.md and in the OpenAPI document. */
  readonly when: string
  /** The message to the client, unless the error has a more precise one. */
  readonly message: string
  /** The headers that other answers do not carry. `Retry-After` may have another value. */
  readonly headers?: Readonly<Record<string, string>>
}

const REALM = 'Bearer realm="plantstore"'
const SOON = { 'Retry-After': '1' }

/** The one table from errors to answers. */
export const ERRORS = {
  body_not_json: {
    code: 40001,
    when: 'the body is empty, not UTF-8, not JSON, begins with a BOM, or is nested deeper than 64 levels',
    message: 'The body must be JSON in UTF-8 without a BOM, nested at most 64 levels deep.',
  },
  plant_invalid: {
    code: 40002,
    when: 'the body is no object, a field is missing or of the wrong type or range, or a text holds U+0000 or an unpaired surrogate',
    message: `The body must be a JSON object with ${describeFields()}.`,
  },
  query_invalid: {
    code: 40003,
    when: '`limit`, `after` or `include` is malformed, out of range or given twice',
    message: '`limit` and `after` must be whole decimal numbers and `include` must be id, each given at most once.',
  },
  id_invalid: {
    code: 40004,
    when: 'the `{id}` in the path is not a decimal int64',
    message: 'The id in the path must be a decimal int64 without a plus sign and leading zeros.',
  },
  several_hosts: {
    code: 40005,
    when: 'the request has more than one `Host` line',
    message: 'The request has more than one Host line: send one.',
  },
  content_range_unsupported: {
    code: 40006,
    when: 'a put has a `Content-Range`',
    message: 'A put stores a whole plant, nothing was changed: send it without a Content-Range.',
  },
  token_missing: {
    code: 40101,
    when: 'there is no `Authorization` line, or it has another scheme',
    message: 'This needs a token: send the header Authorization: Bearer <ACCESS_TOKEN>.',
    headers: { 'WWW-Authenticate': REALM },
  },
  token_invalid: {
    code: 40102,
    when: 'the `Authorization` line is empty, malformed or given more than once, or its token is malformed, unknown, expired, revoked or of a blocked user',
    message: 'The token is not valid (any more): ask the operator for a new one.',
    headers: { 'WWW-Authenticate': `${REALM}, error="invalid_token"` },
  },
  scope_insufficient: {
    code: 40301,
    when: 'the token has scope `read`, and the operation writes',
    message: 'This token may only read: use one with the scope write.',
    headers: { 'WWW-Authenticate': `${REALM}, error="insufficient_scope", scope="write"` },
  },
  quota_exceeded: {
    code: 40302,
    when: 'the user has as many plants as the operator allows; nothing was stored; there is no limit by default',
    message: 'You have as many plants as this server allows, nothing was stored: delete a plant first.',
  },
  path_unknown: {
    code: 40401,
    when: 'there is nothing at this path',
    message: 'There is nothing at this path: check how it is written.',
  },
  plant_not_found: {
    code: 40402,
    when: 'the user has no plant with this id',
    message: 'You have no plant with this id.',
  },
  method_not_allowed: {
    code: 40501,
    when: 'the path does not take this method; `Allow` says which it takes',
    message: 'This path does not take this method: see the header Allow.',
  },
  plant_exists: {
    code: 40901,
    when: 'the user has a plant with this id already; it is left as it was',
    message:
      'You have a plant with this id already, and nothing was changed: GET /plants/{id} shows it, and PUT /plants/{id} replaces it and may be repeated.',
  },
  precondition_failed: {
    code: 41201,
    when: 'a put with `If-Match` finds no plant, `If-Match` names neither the `ETag` of the plant nor `*`, `If-None-Match` names one of them, or either is malformed',
    message:
      'Nothing was changed, because the plant is not as If-Match (where a weak tag never matches) or If-None-Match demands, or one is malformed: get the plant and decide anew.',
  },
  body_too_large: {
    code: 41301,
    when: 'the body is larger than 64 KiB, or than another limit that the operator has set',
    message: 'The body is larger than this server takes: send a shorter one.',
  },
  content_type_unsupported: {
    code: 41501,
    when: 'the `Content-Type` is missing, given twice, or not `application/json` in UTF-8',
    message: 'The body must be JSON in UTF-8, and come with one header Content-Type: application/json.',
  },
  content_encoding_unsupported: {
    code: 41502,
    when: 'the `Content-Encoding` is not `identity`',
    message: 'The server decodes no body: send it without a Content-Encoding.',
    headers: { 'Accept-Encoding': 'identity' },
  },
  rate_exceeded: {
    code: 42901,
    when: 'the token has made more requests than the operator allows; there is no limit by default',
    message: 'This token has made too many requests: wait for as many seconds as Retry-After says.',
    headers: SOON,
  },
  bug: {
    code: 50000,
    when: 'there is a bug in this server',
    message: 'The server has a bug. Tell its operator the request id.',
  },
  store_full: {
    code: 50301,
    when: 'the store is out of space or read-only; nothing was and nothing will be stored',
    message: 'The store is out of space or read-only, nothing was stored: try again later.',
    headers: SOON,
  },
  store_failed: {
    code: 50302,
    when: 'the store is unreachable or damaged, a sync failed, or a standby of PostgreSQL answers; on a write the outcome can be unknown, and then `message` says so',
    message: 'The store has failed, nothing was and nothing will be stored: try again later.',
    headers: SOON,
  },
  store_busy: {
    code: 50303,
    when: 'the server is too busy, the store is locked, or the server is shutting down; nothing was and nothing will be stored',
    message: 'The server is too busy or shutting down, nothing was and nothing will be stored: try again.',
    headers: SOON,
  },
} as const satisfies Partial<Record<ErrorKind, ErrorEntry>>

export type HttpErrorKind = keyof typeof ERRORS

/** The HTTP status of an error: the first three digits of its code. */
export const statusOf = (kind: HttpErrorKind): number => Math.floor(ERRORS[kind].code / 100)

/** The answer to a request that was refused or failed. An empty message means that of the table. */
export function errorResponse(
  kind: HttpErrorKind,
  message = '',
  headers: Readonly<Record<string, string>> = {},
): Response {
  const entry: ErrorEntry = ERRORS[kind]
  const error: Static<typeof ErrorBody> = { error: entry.code, message: message || entry.message }
  const response = respond(JSON.stringify(error), { status: statusOf(kind), headers: HEADERS })
  for (const [name, value] of Object.entries({ ...entry.headers, ...headers })) response.headers.set(name, value)
  return response
}

/** One object for all answers, because a new one for each would cost 70 ns. */
const TAGGED = { headers: jsonHeaders('private, no-cache') }

/** JSON with its strong `ETag`. `link` is the value of `Link` (RFC 8288), or empty. */
export interface TaggedBody {
  readonly body: string | ArrayBuffer
  readonly bodyBytes: number
  readonly etag: string
  readonly link: string
}

/** Answers with a tagged body, or with 304 if the client has it already. */
export function answerTagged({ headers }: Request, { body, bodyBytes, etag, link }: TaggedBody): Response {
  const ifNoneMatch = headers.get('if-none-match')
  if (ifNoneMatch !== null && matchesTag(ifNoneMatch, etag, true))
    return new Response(null, { status: 304, headers: { etag } })
  const response = respond(body, TAGGED, bodyBytes)
  response.headers.set('etag', etag)
  if (link !== '') response.headers.set('link', link)
  return response
}

export function codeTable(): string {
  const rows = Object.values(ERRORS).map(({ code, when }) => `| ${code} | ${when} |`)
  return ['| `error` | when |', '|---|---|', ...rows].join('\n')
}

/** The body of every error answer, and the component `Error` of the OpenAPI document. */
export const ErrorBody = Type.Object(
  {
    error: Type.Integer({
      format: 'int32',
      description: 'The HTTP status times 100, plus a number. A code never changes its meaning.',
    }),
    message: Type.String({ description: 'One sentence for a person: what was wrong and what to do.' }),
  },
  {
    title: 'Error',
    description: `What every error answer carries.\n\n${codeTable()}`,
    example: { error: ERRORS.plant_not_found.code, message: ERRORS.plant_not_found.message },
  },
)
