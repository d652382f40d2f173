import { prettyFactory } from 'pino-pretty'
import { escapeControls, escapeControlsInLines } from './controls.ts'

/** Fields that the sentence of a request contains. */
const REQUEST_FIELDS = ['operation', 'method', 'path', 'status', 'durationMs', 'user', 'tokenId']

/** Turns JSON lines of the log into lines for people. */
export function prettyLines(hasColours: boolean): (line: string) => string {
  const toText = prettyFactory({
    colorize: hasColours,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: REQUEST_FIELDS.join(','),
    messageFormat: (record, messageKey, _level, { colors }) => {
      const message = String(record[messageKey])
      return typeof record.operation === 'string' ? requestText(record, colors) : message
    },
  })
  return (line) => toText(withVisibleControls(JSON.parse(line)))
}

type Paint = (text: string) => string

function requestText(
  record: Readonly<Record<string, unknown>>,
  { green, yellow, red }: Readonly<Record<'green' | 'yellow' | 'red', Paint>>,
) {
  const { operation, method, path, status, durationMs, user, tokenId } = record
  const paint = Number(status) >= 500 ? red : Number(status) >= 400 ? yellow : green
  const caller = user === undefined ? '' : `, ${user} with token ${tokenId}`
  return `${paint(String(status))} ${operation} in ${durationMs} ms: ${method} ${path}${caller}`
}

/**
 * The value with control characters as JSON escapes. Otherwise they could begin a line, or control the terminal. Only a stack keeps
 * its line feeds: its lines are indented.
 */
function withVisibleControls(value: unknown, key = ''): unknown {
  if (typeof value === 'string') return key === 'stack' ? escapeControlsInLines(value) : escapeControls(value)
  if (Array.isArray(value)) return value.map((item) => withVisibleControls(item))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  return Object.fromEntries(entries.map(([name, item]) => [escapeControls(name), withVisibleControls(item, name)]))
}
