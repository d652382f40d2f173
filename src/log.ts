import pino, { type DestinationStream } from 'pino'

/** What can be logged, from the least to the most. */
export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** How lines are written: for programs, or for people. */
export const LOG_FORMATS = ['json', 'pretty'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

/** Where lines are logged. */
export type Logger = pino.Logger

/** Bytes of lines that wait for a reader of stdout. What comes when they are full is dropped: the service goes on. */
const LOG_BUFFER_MAX_BYTES = 8 * 1024 * 1024

/**
 * What may end a line or command a terminal: control characters and separators of Unicode. What JSON itself escapes, those
 * below U+0020, is not in its text any more but for the end of the line.
 */
const UNESCAPED_CONTROLS = /[\u007f-\u009f\u2028\u2029]/g

/** Makes what is written of a JSON line. */
export type LineFormat = (line: string) => string

/** Logs a line per event, a JSON text unless `format` makes another of it. Never waits for whoever reads `destination`. */
export const createLogger = (
  level: LogLevel,
  destination: DestinationStream,
  format: LineFormat = (line) => line,
): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: (line) => format(line.replace(UNESCAPED_CONTROLS, escapeControl)) },
    },
    destination,
  )

/** A character as JSON escapes it. */
export const escapeControl = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Stdout as a place for log lines, and a way to see the last of them out before the process ends. */
export function logToStdout(): { readonly destination: DestinationStream; close(timeoutMs: number): Promise<void> } {
  const destination = pino.destination({ dest: 1, sync: false, minLength: 0, maxLength: LOG_BUFFER_MAX_BYTES })
  // Nobody reads any more: there is nobody to tell.
  destination.on('error', () => {})
  return {
    destination,
    async close(timeoutMs) {
      const closed = Promise.withResolvers<void>()
      destination.once('close', closed.resolve).end()
      await Promise.race([closed.promise, Bun.sleep(timeoutMs)])
      // What is left then has no reader: without this the process would wait for one when it exits.
      destination.destroy()
    },
  }
}
