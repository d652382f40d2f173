// Tested in test/http/transcripts/order.txt.
/** The names of all refusals and failures. http/answers.ts gives each one its HTTP status and code. */
export type ErrorKind =
  | 'body_not_json'
  | 'plant_invalid'
  | 'query_invalid'
  | 'id_invalid'
  | 'several_hosts'
  | 'content_range_unsupported'
  | 'token_missing'
  | 'token_invalid'
  | 'rate_exceeded'
  | 'scope_insufficient'
  | 'quota_exceeded'
  | 'path_unknown'
  | 'plant_not_found'
  | 'method_not_allowed'
  | 'plant_exists'
  | 'precondition_failed'
  | 'body_too_large'
  | 'content_type_unsupported'
  | 'content_encoding_unsupported'
  | 'bug'
  | 'store_full'
  | 'store_failed'
  | 'store_busy'
  | 'store_unusable'
  | 'token_not_found'
  | 'rotation_refused'
  | 'user_not_found'
  | 'address_unavailable'
  | 'file_unusable'
  | 'misused'

/** An action that an operator takes by a command. */
export type Remedy = 'restore' | 'check' | 'undo' | 'back up' | 'dump'

interface AppErrorOptions {
  /** A full sentence for the person who asked. Left out if the kind says everything. */
  readonly message?: string
  /** What only the command line has words for. They continue the message, which therefore ends without a period. */
  readonly remedy?: Remedy | undefined
  /** The write failed, but it may be stored all the same. */
  readonly outcomeIsUnknown?: boolean
  /** After how many seconds another try makes sense, if that is known. */
  readonly retryAfterS?: number
  /** The reason for the operator's log. No client gets it. */
  readonly cause?: unknown
}

/** The error class of this program. One place turns it into an answer, another into an exit code. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly remedy: Remedy | undefined
  readonly outcomeIsUnknown: boolean
  readonly retryAfterS: number | undefined

  constructor(
    readonly kind: ErrorKind,
    { message = '', remedy, outcomeIsUnknown = false, retryAfterS, cause }: AppErrorOptions = {},
  ) {
    super(message, { cause })
    this.remedy = remedy
    this.outcomeIsUnknown = outcomeIsUnknown
    this.retryAfterS = retryAfterS
  }
}

/**
 * Rethrows why a write failed that `checkReady` makes only to try the disk. Drops `outcomeIsUnknown`, because that write changes
 * nothing: the server would tell the client of `/readyz` to get the plant before it asks again.
 */
export function withKnownOutcome(error: unknown): never {
  throw error instanceof AppError ? new AppError(error.kind, { cause: error.cause }) : error
}

/** The kind of an error. `undefined` for a bug. */
export const kindOf = (error: unknown): ErrorKind | undefined => (error instanceof AppError ? error.kind : undefined)

/** The error of a wrong command line, or of a file that it names. The exit code is 2. */
export const misused = (message: string, cause?: unknown): AppError => new AppError('misused', { message, cause })

const FAILURES: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'a part of its path is no directory',
  EACCES: 'this user may not read it',
  EISDIR: 'it is a directory',
  ECONNREFUSED: 'nothing listens there',
}

/** Says in words why a file or an address cannot be read. Returns the code of the error if it has no words for it. */
export function readFailure(error: unknown): string {
  const code = codeOf(error) || String(error)
  return FAILURES[code] ?? code
}

/** The code of an error of the system, a driver or the runtime, like `ENOENT`. Empty if it has none. */
export const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')

export function orUndefined<T>(ask: () => T): T | undefined {
  try {
    return ask()
  } catch {
    return undefined
  }
}
