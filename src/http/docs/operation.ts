import type { TSchema } from '@sinclair/typebox'
import type { OpenAPIV3 } from 'openapi-types'
import { Error as ErrorBody } from '../../domain/error.ts'
import { ERRORS, type HttpErrorKind, JSON_TYPE, statusOf } from '../answers.ts'
import { ref } from './components.ts'

type Headers = NonNullable<OpenAPIV3.ResponseObject['headers']>

const COMMON_HEADERS = {
  'X-Request-Id': ref('headers', 'RequestId'),
  'X-Content-Type-Options': ref('headers', 'ContentTypeOptions'),
  'Cache-Control': ref('headers', 'CacheControl'),
}

/** The headers that only the answers of one status carry. */
const STATUS_HEADERS: Readonly<Record<number, Headers>> = {
  401: { 'WWW-Authenticate': ref('headers', 'Challenge') },
  403: { 'WWW-Authenticate': ref('headers', 'Challenge') },
  415: { 'Accept-Encoding': ref('headers', 'AcceptEncoding') },
  429: { 'Retry-After': ref('headers', 'RetryAfter') },
  503: { 'Retry-After': ref('headers', 'RetryAfter') },
}

/** The errors that every operation can answer. */
const COMMON_ERRORS = [
  'several_hosts',
  'token_missing',
  'token_invalid',
  'rate_exceeded',
  'bug',
  'store_failed',
  'store_busy',
] as const satisfies readonly HttpErrorKind[]

/** A success of an operation. */
interface Success extends Pick<OpenAPIV3.ResponseObject, 'description' | 'links'> {
  /** The type of the body, for TypeScript. */
  readonly type: TSchema
  /** The body in the document, if there is one. */
  readonly content?: OpenAPIV3.MediaTypeObject
  /** The headers that other answers do not carry. */
  readonly headers?: readonly ('ETag' | 'Link')[]
}

interface Operation<Successes, Kind> {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  /** The body of the request in the document, if there is one. */
  readonly requestBody?: OpenAPIV3.RequestBodyObject
  readonly successes: Successes
  /** The errors that not every operation has. */
  readonly errors: readonly Kind[]
}

/** The first three digits of an error's code. */
type StatusOf<Kind extends HttpErrorKind> = Kind extends Kind
  ? `${(typeof ERRORS)[Kind]['code']}` extends `${infer A}${infer B}${infer C}${string}`
    ? `${A}${B}${C}` extends `${infer Status extends number}`
      ? Status
      : never
    : never
  : never

type Answers<Successes, Kind extends HttpErrorKind> = {
  [Status in keyof Successes]: Successes[Status] extends { readonly type: infer Type } ? Type : never
} & Record<StatusOf<Kind | (typeof COMMON_ERRORS)[number]>, typeof ErrorBody>

/** The plugin writes its own `requestBody`, from the schema alone. `documentText` replaces it by what has this name. */
export const REQUEST_BODY = 'x-request-body'

/** What a route says of its operation: the types of its answers, and its part of the OpenAPI document. */
export function operation<const Successes extends Readonly<Record<number, Success>>, const Kind extends HttpErrorKind>({
  successes,
  errors,
  requestBody,
  ...texts
}: Operation<Successes, Kind>) {
  const errorsByStatus = Map.groupBy<number, HttpErrorKind>([...COMMON_ERRORS, ...errors], statusOf)
  const response = Object.fromEntries([
    ...Object.entries(successes).map(([status, { type }]) => [status, type] as const),
    ...[...errorsByStatus.keys()].map((status) => [status, ErrorBody] as const),
  ])
  const responses: OpenAPIV3.ResponsesObject = {
    ...Object.fromEntries(Object.entries(successes).map(([status, success]) => [status, successAnswer(success)])),
    ...Object.fromEntries([...errorsByStatus].map(([status, kinds]) => [status, errorAnswerOf(status, kinds)])),
    // So that a generated client decodes any error.
    default: errorAnswer('any other error'),
  }
  const body = requestBody && { [REQUEST_BODY]: requestBody }
  return { response: response as Answers<Successes, Kind>, detail: { ...texts, ...body, tags: ['plants'], responses } }
}

const successAnswer = ({ description, headers = [], content, links }: Success): OpenAPIV3.ResponseObject => ({
  description,
  headers: { ...COMMON_HEADERS, ...Object.fromEntries(headers.map((name) => [name, ref('headers', name)])) },
  ...(content !== undefined && { content: { [JSON_TYPE]: content } }),
  ...(links !== undefined && { links }),
})

function errorAnswerOf(status: number, kinds: readonly HttpErrorKind[]) {
  const whens = kinds.map((kind) => `${ERRORS[kind].code}: ${ERRORS[kind].when}`).join('; ')
  const examples = kinds.map((kind) => {
    const { code, message, when } = ERRORS[kind]
    return [kind, { summary: when, value: { error: code, message } }] as const
  })
  // The specification names this status alone, with this description.
  const description = status === 400 ? `unexpected error (${whens})` : whens
  return errorAnswer(description, STATUS_HEADERS[status], { examples: Object.fromEntries(examples) })
}

const errorAnswer = (
  description: string,
  headers: Headers = {},
  examples: OpenAPIV3.MediaTypeObject = {},
): OpenAPIV3.ResponseObject => ({
  description,
  headers: { ...COMMON_HEADERS, ...headers },
  content: { [JSON_TYPE]: { schema: ref('schemas', 'Error'), ...examples } },
})
