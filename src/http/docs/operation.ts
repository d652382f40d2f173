// Tested in test/http/openapi.test.ts.
import type { Static, TSchema } from '@sinclair/typebox'
import type { OpenAPIV3 } from 'openapi-types'
import { ERRORS, ErrorBody, type HttpErrorKind, JSON_TYPE, statusOf } from '../answers.ts'

const COMMON_ERRORS = [
  'several_hosts',
  'token_missing',
  'token_invalid',
  'rate_exceeded',
  'bug',
  // Also of a read: SQLite may have to extend its WAL-index.
  'store_full',
  'store_failed',
  'store_busy',
] as const satisfies readonly HttpErrorKind[]

const COMMON_HEADERS = ['X-Request-Id', 'X-Content-Type-Options', 'Cache-Control']

interface Success extends Pick<OpenAPIV3.ResponseObject, 'description' | 'links'> {
  readonly body: TSchema
  /** The headers that other answers do not carry. */
  readonly headers?: readonly ('ETag' | 'Link')[]
}

interface Operation<Successes, Kind> {
  readonly operationId: string
  /** The group of the document that has it: `plants` by default. */
  readonly tag?: string
  readonly summary: string
  readonly description: string
  readonly successes: Successes
  /** The errors that not every operation has. The document shows the first of a status first. */
  readonly errors: readonly Kind[]
}

/** The first three digits of a code, for the types of a client. A type cannot divide, so this one takes a text apart. */
type StatusOf<Code> = Code extends `${infer A}${infer B}${infer C}${string}`
  ? `${A}${B}${C}` extends `${infer Status extends number}`
    ? Status
    : never
  : never

type Answers<Successes extends Readonly<Record<number, Success>>, Kind extends HttpErrorKind> = {
  [Status in keyof Successes & number]: Successes[Status]['body']
} & Record<StatusOf<`${(typeof ERRORS)[Kind | (typeof COMMON_ERRORS)[number]]['code']}`>, typeof ErrorBody>

/** What a route says of its operation: the types of its answers, and its part of the OpenAPI document. */
export function operation<const Successes extends Readonly<Record<number, Success>>, const Kind extends HttpErrorKind>({
  tag = 'plants',
  successes,
  errors,
  ...texts
}: Operation<Successes, Kind>) {
  // Every operation declares `default`, so that a generated client decodes any error.
  const responses: OpenAPIV3.ResponsesObject = { default: { description: 'any other error', ...carrying(ErrorBody) } }
  for (const [status, { body, headers, ...words }] of Object.entries<Success>(successes)) {
    responses[status] = { ...words, ...carrying(body, headers) }
  }
  const kindsByStatus = Map.groupBy<number, HttpErrorKind>([...errors, ...COMMON_ERRORS], statusOf)
  for (const [status, kinds] of kindsByStatus) responses[status] = errorAnswer(status, kinds)
  // Only for types. Elysia would compile a check for each status at the first request to a route, in 2 to 3 ms, and never run
  // it: all answers are a `Response`.
  const response = {} as Answers<Successes, Kind>
  return { response, detail: { ...texts, tags: [tag], responses } }
}

function errorAnswer(status: number, kinds: readonly HttpErrorKind[]): OpenAPIV3.ResponseObject {
  const entries = kinds.map((kind) => [kind, ERRORS[kind]] as const)
  const whens = entries.map(([, { code, when }]) => `${code}: ${when}`)
  const list = whens.length === 1 ? whens.join() : whens.map((each) => `- ${each}`).join('\n')
  // The specification describes this answer as "unexpected error".
  const description = status === 400 ? `An unexpected error in the request:\n\n${list}` : list
  const headers = entries.flatMap(([, entry]) => ('headers' in entry ? Object.keys(entry.headers) : []))
  const examples = entries.map(([kind, { code, message, when }]) => [
    kind,
    { summary: when, value: { error: code, message } satisfies Static<typeof ErrorBody> },
  ])
  return { description, ...carrying(ErrorBody, headers, { examples: Object.fromEntries(examples) }) }
}

/** The headers and the content of an answer with this body. */
function carrying(body: TSchema, headers: readonly string[] = [], examples: OpenAPIV3.MediaTypeObject = {}) {
  const references = [...COMMON_HEADERS, ...headers].map((name) => [name, ref('headers', name)])
  const content = body.type !== 'void' && { content: { [JSON_TYPE]: { schema: body, ...examples } } }
  return { headers: Object.fromEntries(references), ...content }
}

export const ref = (kind: 'schemas' | 'headers', name: string) => ({ $ref: `#/components/${kind}/${name}` })
