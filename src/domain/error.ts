import { type Static, Type } from '@sinclair/typebox'

/** The body of every error answer. */
export const Error = Type.Object(
  {
    error: Type.Integer({
      format: 'int32',
      description: 'The HTTP status times 100, plus a number. A code never changes its meaning.',
    }),
    message: Type.String({ description: 'One sentence for a person: what was wrong and what to do.' }),
  },
  { title: 'Error', description: 'What every error answer carries.' },
)
export type Error = Static<typeof Error>

/** Everything that can be refused or fail, by name. What each one is over HTTP is decided in http/errors.ts. */
export type ErrorKind =
  | 'body_not_json'
  | 'plant_invalid'
  | 'query_invalid'
  | 'id_invalid'
  | 'several_hosts'
  | 'token_missing'
  | 'token_invalid'
  | 'rate_exceeded'
  | 'scope_insufficient'
  | 'path_unknown'
  | 'plant_not_found'
  | 'method_not_allowed'
  | 'plant_exists'
  | 'body_too_large'
  | 'content_type_unsupported'
  | 'content_encoding_unsupported'
  | 'bug'
  | 'store_full'
  | 'store_failed'
  | 'store_busy'
  | 'store_unusable'
  | 'token_not_found'
  | 'user_not_found'
  | 'address_unavailable'
  | 'file_unusable'
  | 'misused'

interface AppErrorOptions {
  /** A full sentence for the person who asked. Left out where the kind alone says everything. */
  readonly message?: string
  /** True when a write failed in such a way that it may be stored all the same. */
  readonly outcomeIsUnknown?: boolean
  /** After how many seconds it is worth trying again, where that is known. */
  readonly retryAfterS?: number
  /** What the operator's log needs to know, and nobody else. */
  readonly cause?: unknown
}

/** The one error of this program. Thrown where the fact is known, turned into an answer or an exit code in one place. */
export class AppError extends globalThis.Error {
  override readonly name = 'AppError'
  readonly kind: ErrorKind
  readonly outcomeIsUnknown: boolean
  readonly retryAfterS: number | undefined

  constructor(kind: ErrorKind, { message = '', outcomeIsUnknown = false, retryAfterS, cause }: AppErrorOptions = {}) {
    super(message, { cause })
    this.kind = kind
    this.outcomeIsUnknown = outcomeIsUnknown
    this.retryAfterS = retryAfterS
  }
}
