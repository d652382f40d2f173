import pino, { type DestinationStream } from 'pino'
import { escapeControls, escapeControlsInLines } from './controls.ts'

export type Logger = pino.Logger

/** How many bytes of lines wait for a reader of stdout. Later lines are dropped, so that the service goes on. */
const LOG_BUFFER_MAX_BYTES = 8 * 1024 * 1024

/** The longest line in bytes, with its line feed. In a longer line, texts are cut and end with `…`. */
const LINE_MAX_BYTES = 2048
/** The first length to which texts are cut, in UTF-16 code units. It is halved until the line is short enough. */
const CUT_LENGTH_MAX = 1024
/** Below this length, objects are cut too, so that every line becomes short enough. */
const CUT_LENGTH_OF_OBJECTS = 64

/** Turns a JSON line into the line that is written, and escapes control characters. */
export type LineFormat = (line: string) => string

/** Logs one line for each event: JSON, or the result of `format`. It never waits for the reader of `destination`. */
export const createLogger = (level: pino.Level, destination: DestinationStream, format = escapeControlsInLines) =>
  pino(
    {
      level,
      base: null,
      timestamp: timeField(),
      formatters: { level: (label) => ({ level: label }) },
      hooks: { streamWrite: shortLines(format) },
    },
    destination,
  )

/** Returns a function that writes the field `time`. Many lines are of the same millisecond, and to write it takes 200 ns. */
function timeField(): () => string {
  let last = { atMs: Number.NaN, field: '' }
  return () => {
    const atMs = Date.now()
    if (atMs !== last.atMs) last = { atMs, field: `,"time":"${new Date(atMs).toISOString()}"` }
    return last.field
  }
}

/** Returns a function that formats a line, and cuts it until the result is within the limit. An escape may take six bytes. */
const shortLines =
  (format: LineFormat): LineFormat =>
  (line) => {
    let text = format(line)
    for (let length = CUT_LENGTH_MAX; Buffer.byteLength(text) > LINE_MAX_BYTES && length >= 1; length /= 2) {
      text = format(cutLine(line, length))
    }
    return text
  }

function cutLine(line: string, length: number): string {
  const record: unknown = JSON.parse(line)
  const cut = (_: string, value: unknown): unknown => {
    if (typeof value === 'string' && value.length > length) return `${value.slice(0, length).toWellFormed()}…`
    return typeof value === 'object' && value !== record && length < CUT_LENGTH_OF_OBJECTS ? '…' : value
  }
  return `${JSON.stringify(record, cut)}\n`
}

/** Logs to stdout. `close` waits for a reader of the last lines, up to a time. */
export function logToStdout(): { readonly destination: DestinationStream; close(timeoutMs: number): Promise<void> } {
  const destination = pino.destination({ dest: 1, sync: false, minLength: 0, maxLength: LOG_BUFFER_MAX_BYTES })
  // Pino calls this after a fatal line and at the exit. It would wait for a reader of all lines, also if nobody reads them.
  destination.flushSync = () => {}
  // Without a reader of stdout, an error of the log has no reader either.
  destination.on('error', () => {})
  return {
    destination,
    async close(timeoutMs) {
      const closed = Promise.withResolvers<void>()
      destination.once('close', closed.resolve).end()
      await Promise.race([closed.promise, Bun.sleep(timeoutMs)])
      // Without this, the process would wait at its exit for a reader of the remaining lines.
      destination.destroy()
    },
  }
}

/** Passes the lines of a thread to another one that writes them. Those of a turn of the event loop travel together. */
export function logToThread(post: (lines: string) => void): DestinationStream {
  let lines = ''
  const pass = () => {
    post(lines)
    lines = ''
  }
  return {
    write(line) {
      if (lines === '') setImmediate(pass)
      lines += line
    },
  }
}

/** Turns JSON lines of the log into lines for people. `undefined` without a word about colours: then lines stay JSON. */
export async function formatFor(hasColours: boolean | undefined): Promise<LineFormat | undefined> {
  if (hasColours === undefined) return undefined
  // Only a log for people waits for the library to load.
  const { prettyFactory } = await import('pino-pretty')
  const toText = prettyFactory({
    colorize: hasColours,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
    // The sentence of a request has these fields.
    ignore: 'operation,method,path,status,durationMs,user,tokenId',
    messageFormat(record, messageKey, _level, { colors: { green, yellow, red } }) {
      const { operation, method, path, status, durationMs, user, tokenId } = record
      if (typeof operation !== 'string') return String(record[messageKey])
      const paint = { 4: yellow, 5: red }[Math.floor(Number(status) / 100)] ?? green
      const caller = user === undefined ? '' : `, ${user} with token ${tokenId}`
      return `${paint(String(status))} ${operation} in ${durationMs} ms: ${method} ${path}${caller}`
    },
  })
  return (line) => toText(JSON.parse(line, withVisibleControls))
}

/**
 * The value of a field with its control characters as JSON escapes. Otherwise they could begin a line, or control the terminal.
 * Only a stack keeps its line feeds, because its lines are indented. The names of fields are constants.
 */
function withVisibleControls(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value
  return name === 'stack' ? escapeControlsInLines(value) : escapeControls(value)
}
