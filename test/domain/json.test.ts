import { describe, expect, test } from 'bun:test'
import { parseInt64JsonNumber } from '../../src/domain/int64.ts'
import { AppError } from '../../src/error.ts'
import { parseJson } from '../../src/formats/plant-json.ts'
import { expectProperty } from '../support/properties.ts'
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
