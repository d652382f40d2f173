import { AppError } from '../../domain/error.ts'
import { Unanswered } from './connection.ts'

/**
 * What SQLSTATEs (https://www.postgresql.org/docs/current/errcodes-appendix.html) and the driver's own codes mean. An
 * error of a statement says that it has done nothing; a lost connection says nothing.
 */
const CONFLICT = /^(?:40001|40P01|23503)$/
const BUSY = /^(?:53200|53300|53400|55P03|57014|25P0[34])$/
const FULL = /^(?:53100|25006)$/
const LOST = /^(?:08\w{3}|40003|57P0[1245])$/
const UNREACHED = /^(?:57P03|28\w{3}|3D000)$/
const REFUSED_ENTRY = /^(?:28\w{3}|3D000)$/
const NOT_CONNECTED =
  /^ERR_POSTGRES_(?:CONNECTION_(?:REFUSED|FAILED)|TLS_\w+|CHANNEL_BINDING_\w+|\w*AUTHENTICATION\w*)$/
/** What OpenSSL and the check of the host's name say, and the system of a file of certificates or with a password. */
const NOT_ACCEPTED = /^(?:ENOENT|EACCES|EISDIR|(?:ERR_(?:OSSL|TLS)|CERT|UNABLE|DEPTH|SELF|HOSTNAME|INVALID)_\w+)$/

/** Whether a statement found others in its way, has done nothing, and is worth repeating. */
export const isConflict = (error: unknown): boolean => CONFLICT.test(sqlState(error))

/** Whether nothing was sent at all, because there was no connection. */
export const isUnreached = (error: unknown): boolean =>
  UNREACHED.test(sqlState(error)) || NOT_CONNECTED.test(codeOf(error)) || NOT_ACCEPTED.test(codeOf(error))

/** Whether the connection ended, or no answer came: nobody knows what became of the statement. */
export const isLost = (error: unknown): boolean =>
  error instanceof Unanswered ||
  LOST.test(sqlState(error)) ||
  (sqlState(error) === '' && codeOf(error).startsWith('ERR_POSTGRES_CONNECTION_') && !isUnreached(error))

/** Whether it may go well without anybody changing an option: a server that is down, about to start, full or busy. */
export const isPassing = (error: unknown): boolean => {
  const [state, code] = [sqlState(error), codeOf(error)]
  if (REFUSED_ENTRY.test(state) || NOT_ACCEPTED.test(code) || /TLS|CHANNEL|AUTH/.test(code)) return false
  return isUnreached(error) || isLost(error) || [CONFLICT, BUSY, FULL].some((states) => states.test(state))
}

/** Says in the store's terms what the database or the driver says. What is no error of theirs stays as it is. */
export function toAppError(error: unknown, { outcomeIsUnknown = false } = {}): unknown {
  if (error instanceof AppError) return error
  const state = sqlState(error)
  if (CONFLICT.test(state) || BUSY.test(state)) return new AppError('store_busy', { cause: error })
  if (FULL.test(state)) return new AppError('store_full', { cause: error })
  const isOurs = /^(?:22|23|42[^5])/.test(state) && !/^42P01/.test(state)
  const isTheirs = state !== '' || error instanceof Unanswered || isUnreached(error) || isLost(error)
  return isTheirs && !isOurs ? new AppError('store_failed', { outcomeIsUnknown, cause: error }) : error
}

/** The SQLSTATE that the server sent; empty where it sent none. */
export const sqlState = (error: unknown): string =>
  error instanceof Error && 'errno' in error && typeof error.errno === 'string' ? error.errno : ''

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
