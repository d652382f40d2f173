import { createLogger, type LineFormat, type LogFormat, type Logger, type LogLevel, logToStdout } from '../../log.ts'
import { type Io, takesEscapeCodes } from '../io.ts'

/** How long the last lines are waited for. */
const LOG_FLUSH_MS = 500

interface LogOptions {
  readonly logLevel: LogLevel
  readonly logFormat?: LogFormat
}

/** A log on stdout, and a way to see the last of its lines out. */
export async function openLog({ logLevel, logFormat }: LogOptions, io: Pick<Io, 'printsToTerminal' | 'env'>) {
  const output = logToStdout()
  const log: Logger = createLogger(logLevel, output.destination, await lineFormat(logFormat, io))
  return { log, close: () => output.close(LOG_FLUSH_MS) }
}

/** What makes lines for people; nothing where programs read them. Colours can be declined (https://no-color.org). */
async function lineFormat(
  format: LogFormat | undefined,
  { printsToTerminal, env }: Pick<Io, 'printsToTerminal' | 'env'>,
): Promise<LineFormat | undefined> {
  if ((format ?? (printsToTerminal ? 'pretty' : 'json')) === 'json') return undefined
  // Who reads JSON does not wait for the library to load.
  const { prettyLines } = await import('../../log-pretty.ts')
  return prettyLines(printsToTerminal && takesEscapeCodes(env) && !env.NO_COLOR)
}
