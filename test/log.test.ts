import { describe, expect, test } from 'bun:test'
import { createLogger, formatFor, type LineFormat } from '../src/log.ts'

/** Every character that may begin a line, control a terminal or reorder text. */
const CONTROLS = [
  ...Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code)),
  ...Array.from({ length: 0x21 }, (_, code) => String.fromCharCode(0x7f + code)),
  '\u2028',
  '\u2029',
  ...'\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069',
]
const FORGED = [...CONTROLS, '\r\n', '\u001b[2K\u001b[1G', '\n{"level":"info"}\n'].map((text) => `a${text}b`)
/** Characters that some program takes for the end of a line, and characters that control a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for these
const DANGEROUS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/

const FORMATS: readonly { readonly name: string; readonly format: LineFormat | undefined }[] = [
  { name: 'json', format: undefined },
  { name: 'pretty', format: await formatFor(false) },
]

function logger(format: LineFormat | undefined) {
  const lines: string[] = []
  const log = createLogger('debug', { write: (line: string) => lines.push(line) }, format)
  return { log, text: () => lines.join('') }
}

describe.each(FORMATS)('a log in $name', ({ name, format }) => {
  test('has one line for each event, whatever its message and its fields contain', () => {
    const { log, text } = logger(format)
    for (const forged of FORGED) {
      log.info(forged)
      log.warn({ value: forged, deep: { list: [forged] } }, 'event')
      log.info({ operation: forged, method: forged, path: forged, status: 200, user: forged, tokenId: 1 }, 'request')
    }

    const lines = text().split('\n')
    expect(lines.pop()).toBe('')
    expect(lines).toHaveLength(3 * FORGED.length)
    expect(lines.filter((line) => DANGEROUS.test(line))).toEqual([])
    if (name === 'json') {
      const values = lines.flatMap((line) => JSON.parse(line).value ?? [])
      expect(values).toEqual(FORGED)
    }
  })

  test('has no line longer than 2 KiB, and marks where a text was cut', () => {
    const { log, text } = logger(format)
    for (const character of ['a', '"', '\\', '\n', '\u001b', '\u0085', '\u00e9', '\u2028', '\ud83c\udf31']) {
      const path = `/${character.repeat(16_000)}`
      log.info({ requestId: 'r', operation: 'other', method: 'GET', path, status: 404, durationMs: 1 }, 'request')
      log.error({ requestId: 'r', err: new Error(path, { cause: new Error(path) }) }, 'a bug')
      log.warn({ requestId: 'r', reason: path }, path)
    }
    log.error({ requestId: 'r', err: new AggregateError(Array.from({ length: 100 }, () => new Error('x'))) }, 'a bug')

    // An error of the log for people goes over several lines; together they are one.
    const events = text().split(name === 'json' ? /^(?=\{)/m : /^(?=\[)/m)
    expect(events).toHaveLength(3 * 9 + 1)
    expect(events.filter((event) => Buffer.byteLength(event) > 2048)).toEqual([])
    expect(events.filter((event) => !event.includes('…'))).toEqual([])
    if (name === 'json') for (const event of events) expect(JSON.parse(event)).toMatchObject({ requestId: 'r' })
  })

  test('does not cut a line of 2 KiB', () => {
    const { log, text } = logger(format)
    log.info('')
    const own = Buffer.byteLength(text())
    log.info('a'.repeat(2048 - own))
    log.info('a'.repeat(2048 - own + 1))

    const [, longest = '', cut = ''] = text().split('\n')
    expect(longest).toContain('a'.repeat(2048 - own))
    expect(cut).toMatch(/[^a]a{1024}…/)
  })

  test('shows an error without characters that begin a line or control the terminal', () => {
    const { log, text } = logger(format)
    const error = new Error('first\n[12:00:00.000] INFO: forged\u001b[2K\u0085x')
    error.stack = `Error: ${error.message}\n    at nowhere`
    log.error({ requestId: 'r', err: error }, 'a bug')

    const [first, ...rest] = text().trimEnd().split('\n')
    expect(first).toContain('a bug')
    // What follows is further to the right than any line of the log begins.
    expect(rest.filter((line) => !line.startsWith('    '))).toEqual([])
    expect(DANGEROUS.test(text())).toBe(false)
    expect(text()).toContain('at nowhere')
  })
})

test('a log for people has colours for the level and the status, if they are wanted', async () => {
  const { log, text } = logger(await formatFor(true))
  for (const status of [204, 404, 503]) log.info({ operation: 'other', status }, 'request')

  const colours = [...text().matchAll(/\[(\d+)m(\d{3})/g)].map(([, colour, status]) => [status, colour])
  expect(colours).toEqual([
    ['204', '32'],
    ['404', '33'],
    ['503', '31'],
  ])
})
