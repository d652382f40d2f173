import { describeAddress, type PostgresAddress } from '../../domain/database-url.ts'
import { AppError, codeOf, readFailure } from '../../domain/error.ts'
import { storeUnusable } from '../errors.ts'
import { AnswerTimeout } from './driver.ts'

/**
 * How long reads, groups of writes and transactions are repeated after conflicts and lost connections. Every request gets its
 * answer before the shortest --idle-timeout cuts its connection.
 */
export const REPEAT_MS = 2000
/** No attempt begins with less time than this, because it would hardly end in time. */
const ATTEMPT_MIN_MS = 300
/** The longest pause before another attempt. The pause is random, so that two processes do not meet again. */
const PAUSE_MAX_MS = 20

/**
 * The meaning of SQLSTATEs (https://www.postgresql.org/docs/current/errcodes-appendix.html) and of the driver's codes. After
 * an error of a statement, the statement has done nothing. After a lost connection, its outcome is unknown.
 */
const CONFLICT = /^(?:40001|40P01|23503)$/
const BUSY = /^(?:53200|53300|53400|55P03|57014|25P0[34])$/
const FULL = /^(?:53100|25006)$/
const UNSUPPORTED = /^(?:0A000|42883)$/
const CONNECTION_LOST = /^(?:08\w{3}|40003|57P0[1245])$/
const UNREACHED = /^(?:57P03|28\w{3}|3D000)$/
const LOGIN_REFUSED = /^(?:28\w{3}|3D000)$/
const NOT_CONNECTED =
  /^ERR_POSTGRES_(?:CONNECTION_(?:REFUSED|FAILED)|TLS_\w+|CHANNEL_BINDING_\w+|\w*AUTHENTICATION\w*)$/
/** Codes of OpenSSL, of the check of the host name, and of a certificate or password file that cannot be read. */
const CREDENTIALS_FAILED = /^(?:ENOENT|EACCES|EISDIR|(?:ERR_(?:OSSL|TLS)|CERT|UNABLE|DEPTH|SELF|HOSTNAME|INVALID)_\w+)$/

/** Whether the database lacks a function, a view or a feature that a statement uses, or does not let this user use it. */
export const isUnsupported = (error: unknown): boolean => /^(?:0A000|42883|42P01|42501)$/.test(sqlState(error))

/** Whether a statement conflicted with another transaction. It has done nothing and can be repeated. */
export const isConflict = (error: unknown): boolean => CONFLICT.test(sqlState(error))

/** Whether there was no connection. Then nothing was sent. */
const isUnreached = (error: unknown): boolean =>
  UNREACHED.test(sqlState(error)) || NOT_CONNECTED.test(codeOf(error)) || CREDENTIALS_FAILED.test(codeOf(error))

/** Whether a connection ended before the answer came. The outcome of the statement is unknown. */
export const isConnectionLost = (error: unknown): boolean =>
  !isUnreached(error) &&
  (error instanceof AnswerTimeout ||
    CONNECTION_LOST.test(sqlState(error)) ||
    (sqlState(error) === '' && codeOf(error).startsWith('ERR_POSTGRES_CONNECTION_')))

/** Whether a later attempt may succeed with the same options. The server may be down, starting, full or busy. */
export const isTemporary = (error: unknown): boolean => {
  const [state, code] = [sqlState(error), codeOf(error)]
  if (LOGIN_REFUSED.test(state) || CREDENTIALS_FAILED.test(code) || /TLS|CHANNEL|AUTH/.test(code)) return false
  return isUnreached(error) || isConnectionLost(error) || [CONFLICT, BUSY, FULL].some((states) => states.test(state))
}

/** Attempts something for this time, while it fails with errors after which it can be repeated. */
export async function repeat<T>(
  timeMs: number,
  isRepeatable: (error: unknown) => boolean,
  attempt: (leftMs: () => number) => Promise<T>,
): Promise<T> {
  const deadlineMs = performance.now() + timeMs
  const leftMs = () => deadlineMs - performance.now()
  for (;;) {
    try {
      return await attempt(leftMs)
    } catch (error) {
      if (!isRepeatable(error) || leftMs() < ATTEMPT_MIN_MS) throw error
    }
    await Bun.sleep(Math.random() * PAUSE_MAX_MS)
  }
}

/** Translates an error of the database or the driver. Any other error is a bug and stays as it is. */
export function toAppError(error: unknown, { outcomeIsUnknown = false } = {}): unknown {
  if (error instanceof AppError) return error
  const state = sqlState(error)
  if (CONFLICT.test(state) || BUSY.test(state)) return new AppError('store_busy', { cause: error })
  if (FULL.test(state)) return new AppError('store_full', { cause: error })
  if (UNSUPPORTED.test(state)) {
    return new AppError('store_failed', { message: `This database ${lacksSupport(error)}`, cause: error })
  }
  const isBug = /^(?:22|23|42[^5])/.test(state) && !/^42P01/.test(state)
  const isFailure = state !== '' || isUnreached(error) || isConnectionLost(error)
  return isFailure && !isBug ? new AppError('store_failed', { outcomeIsUnknown, cause: error }) : error
}

/** Translates an error that keeps a store from being opened. */
export function toOpenError(address: PostgresAddress, error: unknown): AppError {
  if (error instanceof AppError) return error
  if (UNSUPPORTED.test(sqlState(error)))
    return storeUnusable(`The database ${describeAddress(address)} ${lacksSupport(error)}`, error)
  const problem = isTemporary(error) ? 'reached' : 'used'
  return storeUnusable(`The database ${describeAddress(address)} cannot be ${problem}: ${reasonOf(error)}.`, error)
}

const lacksSupport = (error: unknown): string =>
  `does not support what this needs: ${reasonOf(error)}. See docs/explanation/tested.md#databases.`

const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  // A file with the password or with certificates.
  if ('path' in error) return `the file ${error.path} cannot be read, because ${readFailure(error)}`
  return error.message.replace(/\.$/, '')
}

/** The SQLSTATE that the server sent, or an empty text. */
export const sqlState = (error: unknown): string =>
  error instanceof Error && 'errno' in error && typeof error.errno === 'string' ? error.errno : ''
