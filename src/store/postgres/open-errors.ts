import { describeAddress, type PostgresAddress } from '../../domain/database-url.ts'
import { AppError, readFailure } from '../../domain/error.ts'
import { storeUnusable } from '../errors.ts'
import { isTemporary } from './errors.ts'

/** Why a store can never be opened with these options, or `undefined` if a later attempt may succeed. */
export function permanentError(address: PostgresAddress, error: unknown): AppError | undefined {
  if (error instanceof AppError && error.kind === 'store_unusable') return error
  if (isTemporary(error)) return undefined
  return storeUnusable(`The database ${describeAddress(address)} cannot be used: ${reasonOf(error)}.`, error)
}

/** Why a store cannot be opened now. */
export const toOpenError = (address: PostgresAddress, error: unknown): AppError =>
  permanentError(address, error) ??
  storeUnusable(`The database ${describeAddress(address)} cannot be reached: ${reasonOf(error)}.`, error)

const reasonOf = (error: unknown): string => {
  const cause = error instanceof AppError && error.cause !== undefined ? error.cause : error
  if (!(cause instanceof Error)) return String(cause)
  // A file with the password or with certificates.
  if ('path' in cause) return `the file ${cause.path} cannot be read, because ${readFailure(cause)}`
  return cause.message.replace(/\.$/, '')
}
