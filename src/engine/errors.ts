// Tested in test/engine/sqlite/failure.test.ts.
/** An action that only the product can name. Its words continue a message, which therefore ends without a period. */
export type Remedy = 'restore' | 'check' | 'undo' | 'back up' | 'dump'

interface EngineErrorOptions {
  /** A sentence for the operator. Left out if the kind says everything. */
  readonly message?: string
  readonly remedy?: Remedy
  /** The write failed, but it may be stored all the same. */
  readonly outcomeIsUnknown?: boolean
  readonly cause?: unknown
}

/**
 * An error of the engine, or the refusal of a write, which has the kind and the message that the program gave it. The engine's
 * kinds are `store_busy`, `store_full` and `store_failed` of a store that is open, `store_unusable` of one that cannot be
 * opened, `file_unusable` of another file, and `misused` of a call that makes no sense.
 */
export class EngineError extends Error {
  override readonly name = 'EngineError'
  readonly remedy: Remedy | undefined
  readonly outcomeIsUnknown: boolean

  constructor(
    readonly kind: string,
    { message = '', remedy, outcomeIsUnknown = false, cause }: EngineErrorOptions = {},
  ) {
    super(message, { cause })
    this.remedy = remedy
    this.outcomeIsUnknown = outcomeIsUnknown
  }
}

/** The kind of an error of the engine or of a program. */
export const kindOf = (error: unknown): string | undefined =>
  error instanceof Error && 'kind' in error ? String(error.kind) : undefined

/** The database that a server uses, or a backup that is to replace it. */
export type FileRole = 'database' | 'backup'

/** The store cannot be opened. The message is one line for the operator. */
export const storeUnusable = (message: string, cause?: unknown, remedy?: Remedy): EngineError =>
  new EngineError('store_unusable', { message, cause, ...(remedy && { remedy }) })

/** A file is damaged or truncated, or another program has changed it. */
export function fileDamaged(role: FileRole, path: string, problem: string, cause?: unknown): EngineError {
  const message = `The ${role} ${path} ${problem}`
  if (role === 'database') return storeUnusable(message, cause, 'restore')
  return storeUnusable(`${message}. Name another one: nothing was changed.`, cause)
}

/** Says that a newer executable has migrated the store. `known` is the latest version that this one knows. */
export const describeTooNew = (database: string, version: number, known: number): string =>
  `The database ${database} has schema version ${version}, but this executable knows versions up to ${known}: use the newer executable.`

/** The code of an error of the system, a driver or the runtime, like `ENOENT`. Empty if it has none. */
export const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')

/** What `ask` returns, or `undefined` if it throws. */
export function orUndefined<T>(ask: () => T): T | undefined {
  try {
    return ask()
  } catch {
    return undefined
  }
}
