import { describe, expect, test } from 'bun:test'
import { AppError } from '../../src/domain/error.ts'
import { parseInt64JsonNumber } from '../../src/domain/int64.ts'
import { JSON_DEPTH_MAX, parseJson } from '../../src/domain/new-plant.ts'
import { expectProperty, PROPERTY_TIMEOUT_MS } from '../support/properties.ts'
import { anyJsonText } from './json-texts.ts'

const REFUSED = 'body_not_json'
/** Texts for each run of a property, because one takes some microseconds. */
const TEXTS_PER_RUN = 100

function read(text: string): unknown {
  try {
    return parseJson(new TextEncoder().encode(text))
  } catch (error) {
    if (error instanceof AppError) return error.kind
    throw error
  }
}

type Reviver = (this: unknown, name: string, member: unknown) => unknown

/** What `read` shall return, by a reviver, which is told the digits of each number. */
function expectedOf(text: string): unknown {
  const idSources = new Map<unknown, string>()
  const keepSource = function (this: unknown, name: string, member: unknown, { source }: { source: string }) {
    if (name === 'id' && typeof member === 'number') idSources.set(this, source)
    return member
  }
  try {
    const value = JSON.parse(text, keepSource as Reviver)
    const id = parseInt64JsonNumber(idSources.get(value) ?? '')
    if (id !== undefined) value.id = id
    return value
  } catch {
    return REFUSED
  }
}

const idOf = (text: string): unknown => {
  const value = read(text)
  return typeof value === 'object' && value !== null && 'id' in value ? value.id : value
}

describe('parseJson', () => {
  test(
    'reads and refuses what JSON.parse does, with the exact id of the outermost object',
    async () => {
      const seen = { refused: 0, exact: 0, others: 0 }

      await expectProperty(
        'JSON',
        anyJsonText,
        async (text) => {
          const expected = expectedOf(text)
          expect(read(text)).toStrictEqual(expected)
          if (expected === REFUSED) seen.refused++
          else if (typeof idOf(text) === 'bigint') seen.exact++
          else seen.others++
        },
        TEXTS_PER_RUN,
      )

      for (const [kind, count] of Object.entries(seen)) expect([kind, count > TEXTS_PER_RUN]).toEqual([kind, true])
    },
    PROPERTY_TIMEOUT_MS,
  )

  test.each([
    ['{"id":0}', 0n],
    ['{"id":-0}', 0n],
    ['{"id":999999999999999}', 999999999999999n],
    ['{"id":9007199254740991}', 9007199254740991n],
    ['{"id":9007199254740993}', 9007199254740993n],
    ['{"id":-9007199254740993}', -9007199254740993n],
    ['{"id":9007199254740993.00}', 9007199254740993n],
    ['{"id":9.007199254740993e15}', 9007199254740993n],
    ['{"id": 5.0 ,"name":"Fern"}', 5n],
    ['{"id":5e3}', 5000n],
    ['{"id":5,"name":"1.5"}', 5n],
    ['{"id":7,"x":[{"id":8}],"y":{"id":9}}', 7n],
    ['{"x":[{"id":8}],"y":{"id":9},"id":7}', 7n],
    ['{"id":7,"name":"\\",\\"id\\":8"}', 7n],
    ['{"id":7,"name":"id","tag":"\\\\"}', 7n],
    ['{"id":1.5,"id":5}', 5n],
    ['{"id":"5","id":5.0}', 5n],
    ['{"id":{"id":1},"id":5.0}', 5n],
    ['{"id":9007199254740992,"id":9007199254740993}', 9007199254740993n],
    ['{"id":9007199254740993,"id":9007199254740992}', 9007199254740992n],
    ['{"id":1.0,"\\u0069\\u0064":2.0}', 2n],
    ['{"\\u0069d":1.0,"id":2.0}', 2n],
  ])('reads %j with the exact id %p', (text, id) => {
    expect(idOf(text)).toBe(id)
  })

  test.each([
    ['1e-400', 0],
    ['5.0000000000000000000001', 5],
    ['4.9999999999999999999999', 5],
    ['9007199254740991.4', 9007199254740991],
    ['9007199254740992.5', 9007199254740992],
    ['90071992547409915e-1', 9007199254740992],
    ['5.5', 5.5],
    ['9223372036854775808', 2 ** 63],
    ['"5"', '5'],
    ['null', null],
  ])('keeps what JSON.parse makes of the id %s, which is not an int64', (source, id) => {
    expect([idOf(`{"id":${source}}`), idOf(`{"id":7,"x":[1.5],"id":${source}}`)]).toEqual([id, id])
  })

  test('makes __proto__ an own property, which changes no prototype', () => {
    const value = read('{"__proto__":{"polluted":1},"id":5.0}')

    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(Object.keys(Object(value))).toEqual(['__proto__', 'id'])
  })

  test.each([
    ['arrays', '[', ']', 1],
    ['objects', '{"id":', '}', 1],
    ['arrays and objects', '[{"x":', '}]', 2],
  ])('reads JSON_DEPTH_MAX levels of %s and refuses one more', (_, open, close, levels) => {
    const atLimit = `${open.repeat(JSON_DEPTH_MAX / levels)}0${close.repeat(JSON_DEPTH_MAX / levels)}`

    expect(read(atLimit)).toEqual(JSON.parse(atLimit))
    expect([read(`[${atLimit}]`), read(`{"id":${atLimit}}`)]).toEqual([REFUSED, REFUSED])
  })

  test('counts no brackets in strings', () => {
    const text = `"${'[{"id":'.repeat(JSON_DEPTH_MAX)}"`.replaceAll('"id"', '\\"id\\"')

    expect([read(text), read(`{"x":${text},"id":5.0}`)]).toEqual([JSON.parse(text), { x: JSON.parse(text), id: 5n }])
  })
})
