import { createLogger, type LineFormat, type LogFormat, logToStdout } from '../../log.ts'
import { type Io, takesEscapeCodes } from '../io.ts'
import type { ServeOptions } from './options.ts'

/** How long the server waits for a reader of the last lines. */
const LOG_FLUSH_MS = 500

/** Opens a log on stdout. `close` waits a moment for its last lines. */
export async function openLog(
  { logLevel, logFormat }: Pick<ServeOptions, 'logLevel' | 'logFormat'>,
  io: Pick<Io, 'printsToTerminal' | 'env'>,
) {
  const output = logToStdout()
  const log = createLogger(logLevel, output.destination, await lineFormat(logFormat, io))
  return { log, close: () => output.close(LOG_FLUSH_MS) }
}

/** The format of lines for people, or `undefined` for JSON. `NO_COLOR` turns colours off (https://no-color.org). */
async function lineFormat(
  format: LogFormat | undefined,
  { printsToTerminal, env }: Pick<Io, 'printsToTerminal' | 'env'>,
): Promise<LineFormat | undefined> {
  if ((format ?? (printsToTerminal ? 'pretty' : 'json')) === 'json') return undefined
  // Only a log for people waits for the library to load.
  const { prettyLines } = await import('../../log-pretty.ts')
  return prettyLines(printsToTerminal && takesEscapeCodes(env) && !env.NO_COLOR)
}
