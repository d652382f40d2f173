import { prettyFactory } from 'pino-pretty'
import { escapeControls, escapeControlsInLines } from './controls.ts'

/** What the sentence of a request says already. */
const REQUEST_FIELDS = ['operation', 'method', 'path', 'status', 'durationMs', 'user', 'tokenId']

/** Makes lines for people of JSON lines of the log, with or without colours. */
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
 * The same value with control characters as they are written in JSON. What is printed as it is would else begin a line of
 * its own, or command the terminal. Only a stack has lines: they are printed further to the right than any line begins.
 */
function withVisibleControls(value: unknown, key = ''): unknown {
  if (typeof value === 'string') return key === 'stack' ? escapeControlsInLines(value) : escapeControls(value)
  if (Array.isArray(value)) return value.map((item) => withVisibleControls(item))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  return Object.fromEntries(entries.map(([name, item]) => [escapeControls(name), withVisibleControls(item, name)]))
}
