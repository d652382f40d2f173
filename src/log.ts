import pino, { type DestinationStream } from 'pino'
import { escapeControlsInLines } from './controls.ts'

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

/** The longest line in bytes, with its end. A longer one is written with its texts cut short, each with `…` at its end. */
const LINE_MAX_BYTES = 2048
/** UTF-8 takes at most three bytes for each unit of a JavaScript string. */
const UNIT_MAX_BYTES = 3
/** A longer JSON line is too long in any format: formatting at most halves it, by taking away backslashes. */
const FORMATTED_MAX_LENGTH = 3 * LINE_MAX_BYTES
/** How many characters of each text are kept: the first of these with which the line is short enough. */
const CUT_LENGTHS = [1024, 512, 256, 128, 64]
/** The last resort: a line with so short texts and without objects is always short enough. */
const SHORTEST_CUT_LENGTH = 32

/** Makes what is written of a JSON line. */
export type LineFormat = (line: string) => string

/** Logs a line per event, a JSON text unless `format` makes another of it. Never waits for whoever reads `destination`. */
export const createLogger = (
  level: LogLevel,
  destination: DestinationStream,
  format: LineFormat = (line) => line,
): Logger => {
  const formatEscaped: LineFormat = (line) => format(escapeControlsInLines(line))
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: (line) => formatShort(line, formatEscaped) },
    },
    destination,
  )
}

/** Formats a line. The limit counts what is written, because a character may take six bytes once it is escaped. */
function formatShort(line: string, format: LineFormat): string {
  const whole = line.length > FORMATTED_MAX_LENGTH ? undefined : format(line)
  if (whole !== undefined && isShort(whole)) return whole
  const record: unknown = JSON.parse(line)
  for (const length of CUT_LENGTHS) {
    const cut = format(stringify(record, (value) => cutText(value, length)))
    if (isShort(cut)) return cut
  }
  return format(stringify(record, (value) => (typeof value === 'object' ? '…' : cutText(value, SHORTEST_CUT_LENGTH))))
}

const isShort = (text: string): boolean =>
  text.length * UNIT_MAX_BYTES <= LINE_MAX_BYTES || Buffer.byteLength(text) <= LINE_MAX_BYTES

/** A line of a record whose values, but for the record itself, are those that `change` returns. */
const stringify = (record: unknown, change: (value: unknown) => unknown): string =>
  `${JSON.stringify(record, (_, value: unknown) => (value === record ? value : change(value)))}\n`

const cutText = (value: unknown, length: number): unknown =>
  typeof value === 'string' && value.length > length ? `${value.slice(0, length).toWellFormed()}…` : value

/** Stdout as a place for log lines, and a way to see the last of them out before the process ends. */
export function logToStdout(): { readonly destination: DestinationStream; close(timeoutMs: number): Promise<void> } {
  const destination = pino.destination({ dest: 1, sync: false, minLength: 0, maxLength: LOG_BUFFER_MAX_BYTES })
  // Pino calls this after a fatal line and at the exit. It would wait until somebody has read all lines, and sync stdout: a process
  // that must end would not end.
  destination.flushSync = () => {}
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
