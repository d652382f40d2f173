import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseInt64JsonNumber } from '../../src/domain/int64.ts'
import { AppError } from '../../src/error.ts'
import { parseJson } from '../../src/formats/plant-json.ts'
import { expectProperty } from '../support/properties.ts'

/** Strings that end, nest and escape other strings, and that look like an `id`. */
const STRINGS = [
  ...['""', '"a"', '"\\""', '"\\\\"', '"\\\\\\""', '"[{"', '"\\u0041"', '"\\"id\\":5"', '"5e3"', '"\u{1f331}\u2028"'],
]
const NUMBERS = [
  ...['0', '-0', '7', '-12', '1.50', '0.1e2', '1E-5', '-3e+07', '1e400', '5.0', '1e-400', '5.0000000000000000000001'],
  ...['999999999999999', '9007199254740991', '-9007199254740993', '9223372036854775807', '9223372036854775808'],
  ...['9007199254740992', '9007199254740993.00', '9.007199254740993e15', '9007199254740991.4', '90071992547409915e-1'],
]
const NAMES = ['"id"', '"\\u0069d"', '"\\u0069\\u0064"', '"ID"', '"\\"id"', '"name"', '"x"', '"__proto__"', '""']
/** What a mutation puts into a text. */
const NOISE = ['', ...'{}[]",:\\ue+-.01tf \t\n\0\u001f\u00a0\ufeff']

const anySpace = fc.constantFrom('', '', '', '', ' ', '\n', '\t', '\r\n')
const spaced = (text: fc.Arbitrary<string>) => fc.tuple(anySpace, text, anySpace).map((parts) => parts.join(''))

const { value: anyValue, object: anyObject } = fc.letrec<{ value: string; object: string; array: string }>((tie) => {
  const members = fc.tuple(spaced(fc.constantFrom('"id"', ...NAMES)), spaced(tie('value')))
  return {
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(...NUMBERS, ...STRINGS, 'true', 'false', 'null'),
      tie('object'),
      tie('array'),
    ),
    object: fc.array(members, { maxLength: 5 }).map((all) => `{${all.map((member) => member.join(':')).join(',')}}`),
    array: fc.array(spaced(tie('value')), { maxLength: 4 }).map((all) => `[${all.join(',')}]`),
  }
})

const anyJson = spaced(fc.oneof({ arbitrary: anyObject, weight: 4 }, anyValue))

/** JSON, most of it an object with an `id`, or the same with something put in, taken out or replaced. */
const anyJsonText: fc.Arbitrary<string> = fc.oneof(
  anyJson,
  fc.tuple(anyJson, fc.nat(), fc.nat(2), fc.constantFrom(...NOISE)).map(([text, place, removed, noise]) => {
    const at = place % (text.length + 1)
    return (text.slice(0, at) + noise + text.slice(at + removed)).toWellFormed()
  }),
)

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
  test('reads and refuses what JSON.parse does, with the exact id of the outermost object', async () => {
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
  })

  test('makes __proto__ an own property, which changes no prototype', () => {
    const value = read('{"__proto__":{"polluted":1},"id":5.0}')

    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(Object.keys(Object(value))).toEqual(['__proto__', 'id'])
  })
})
