import { describe, expect, test } from 'bun:test'
import { AppError } from '../../src/domain/error.ts'
import { JSON_DEPTH_MAX, readMembers } from '../../src/http/json-members.ts'
import { randomNumbers } from '../support/random.ts'
import { jsonText } from './support/json-texts.ts'

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8]
const TEXTS_PER_SEED = 5000
const NAMES = ['id', 'name', 'tag'] as const

/** The members by name as JSON.parse has them, `object` for what is none, `refused` for what is no JSON. */
function expected(text: string) {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'refused'
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'no object'
  return Object.fromEntries(Object.entries(value).filter(([name]) => NAMES.some((wanted) => wanted === name)))
}

/** The same as `readMembers` has them. */
function actual(text: string) {
  try {
    const sources = readMembers(text, NAMES)
    if (sources === undefined) return 'no object'
    return Object.fromEntries(Object.entries(sources).map(([name, source]) => [name, JSON.parse(source)]))
  } catch (error) {
    if (error instanceof AppError && error.kind === 'body_not_json') return 'refused'
    throw error
  }
}

describe('the members of a JSON text', () => {
  test.each(SEEDS)('are those that JSON.parse reads, and what it refuses is refused, with seed %i', (seed) => {
    const random = randomNumbers(seed)
    const seen = { refused: 0, 'no object': 0, object: 0 }

    const different: string[] = []

    for (let count = 0; count < TEXTS_PER_SEED; count++) {
      const json = jsonText(random)
      const members = expected(json)
      if (!Bun.deepEquals(actual(json), members)) different.push(json)
      seen[typeof members === 'string' ? members : 'object']++
    }

    expect(different).toEqual([])
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(TEXTS_PER_SEED / 50)
  })

  test.each([
    '{"id":1}',
    '{"id":[1,{"x":null}],"name":"\\u0041\\"","id":-0.5e-7}',
    ' \t\r\n[ ] ',
    '"\\ud800"',
    'true',
    '{"id":1}x',
    '{"id":1,}',
    '{,}',
    '{"id"}',
    '{"id":}',
    '{id:1}',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[1}',
    '{"id":1]',
    '"a\u001fb"',
    '"a\u007fb"',
    '"\\x41"',
    '"\\u12g4"',
    '"\\u123',
    '"\\',
    '"',
    '',
    ' ',
    '-',
    '+1',
    '01',
    '-01',
    '1.',
    '.1',
    '1e',
    '1e+',
    '1.e1',
    '0x1',
    'nul',
    'nulll',
    'True',
    '\ufeff{}',
    '\u00a0{}',
    '{}\0',
    '1\u000b',
  ])('%j is read or refused as by JSON.parse', (json) => {
    expect(actual(json)).toEqual(expected(json))
  })

  test('is read with JSON_DEPTH_MAX levels, and refused with one more, of arrays, objects and both', () => {
    const openings: readonly (readonly [open: string, close: string])[] = [
      ['[', ']'],
      ['{"id":', '}'],
      ['[{"x":', '}]'],
    ]
    for (const [open, close] of openings) {
      const levelsEach = open.match(/[[{]/g)?.length ?? 0
      const nested = (levels: number) => open.repeat(levels / levelsEach) + close.repeat(levels / levelsEach)
      // What is in the innermost.
      const atLimit = nested(JSON_DEPTH_MAX).replace(`${open}${close}`, `${open}0${close}`)

      expect(actual(atLimit)).toEqual(expected(atLimit))
      expect(actual(`[${atLimit}]`)).toBe('refused')
      expect(actual(`{"id":${atLimit}}`)).toBe('refused')
    }
  })
})
