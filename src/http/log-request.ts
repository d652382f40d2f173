import { AppError } from '../domain/error.ts'
import { TOKEN_PREFIX } from '../domain/token.ts'
import type { Logger } from '../log.ts'
import type { RequestContext } from './context.ts'
import type { Answered } from './statistics.ts'

interface LoggedRequest extends Answered {
  readonly method: string
  readonly path: string
}

/** Writes the log line of an answered request. */
export function logRequest(log: Logger, request: LoggedRequest, { requestId, caller }: RequestContext): void {
  const { operation, method, path, status, durationMs } = request
  log.info(
    {
      requestId,
      operation,
      method,
      path: path.replace(TOKEN_TEXT, `${TOKEN_PREFIX}***`),
      status,
      durationMs: Math.round(durationMs * 1000) / 1000,
      user: caller?.userName,
      tokenId: caller?.id,
    },
    'request',
  )
}

/** Writes a line for the operator about a fault that no client is told. A bug has its stack. */
export function logFault(log: Logger, { requestId }: RequestContext, error: unknown): void {
  if (!(error instanceof AppError)) {
    log.error({ requestId, err: error }, 'a bug')
    return
  }
  // Without a cause the server refuses on purpose, for example while it ends.
  if (error.cause === undefined) return
  const line = { requestId, kind: error.kind, reason: String(error.cause) }
  if (error.kind === 'store_failed') log.error(line, 'the store has failed')
  else log.warn(line, 'the store refused')
}

/** A token or most of one, percent-encoded too: some client put it in a path. No path of ours has such a word. */
const TOKEN_TEXT = new RegExp(`${TOKEN_PREFIX}[0-9A-Za-z]+|[0-9A-Za-z_%]{32,}`, 'g')
