import { describe, expect, test } from 'bun:test'
import type { TSchema } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { INT64_MAX, INT64_MIN } from '../../src/domain/int64.ts'
import { NewPlant, Plant, toPlant } from '../../src/domain/plant.ts'

const newPlant = TypeCompiler.Compile(NewPlant)
const plant = TypeCompiler.Compile(Plant)

const KEPT = [
  '',
  ' ',
  'Fern',
  '\u0001',
  'two\nlines\r\n',
  '\u007f\u0080\u00ff',
  'e\u0301',
  '日本語',
  '\ud7ff',
  '\ue000',
  '\ufeff',
  '\ufffd',
  '\ufffe\uffff',
  '\u{10000}',
  '\u{10ffff}',
  '🌱',
  '🌱🌱',
  'a🌱b🌵c',
  '👩🏽‍🌾',
  '\\u0000',
]

const REFUSED = [
  '\u0000',
  'Fern\u0000',
  '\u0000Fern',
  'a\u0000b',
  '🌱\u0000',
  '\ud800',
  '\udbff',
  '\udc00',
  '\udfff',
  'Fern\ud83c',
  '\udf31Fern',
  'a\ud83cb\udf31c',
  '\udf31\ud83c',
  '\ud83c\ud83c\udf31',
  '🌱\ud83c',
  '🌱\udf31',
  '\ud83c🌱',
]

describe('name and tag', () => {
  test('can be any text that stores keep faithfully', () => {
    expect(KEPT.filter((text) => !newPlant.Check({ id: 1n, name: text, tag: text }))).toEqual([])
    expect(KEPT.filter((text) => !plant.Check({ name: text, tag: text }))).toEqual([])
  })

  test('with U+0000 or an unpaired surrogate are refused', () => {
    expect(REFUSED.filter((text) => newPlant.Check({ id: 1n, name: text }))).toEqual([])
    expect(REFUSED.filter((text) => newPlant.Check({ id: 1n, name: 'Fern', tag: text }))).toEqual([])
  })

  test('of a megabyte are decided, wherever the one character is that counts', () => {
    const long = '🌱'.repeat(250_000)

    expect(newPlant.Check({ id: 1n, name: long })).toBe(true)
    expect(
      [`\u0000${long}`, `${long}\u0000`, long.slice(1), long.slice(0, -1)].filter((text) =>
        newPlant.Check({ id: 1n, name: text }),
      ),
    ).toEqual([])
  })

  test.each([[['']], [{}], [null], [undefined], [5], [5n], [true], [new String('Fern')]])('%p is no text', (value) => {
    expect(newPlant.Check({ id: 1n, name: value })).toBe(false)
  })

  test('the tag can be left out, the name cannot', () => {
    expect(newPlant.Check({ id: 1n, name: 'Fern' })).toBe(true)
    expect(newPlant.Check({ id: 1n, tag: 'indoor' })).toBe(false)
    expect(newPlant.Check({ id: 1n, name: 'Fern', tag: null })).toBe(false)
  })

  // Linters and client generators compile a pattern with the flag or without.
  test.each(['', 'u', 'v'])('the published patterns say together the same as the check, with the flags %p', (flags) => {
    const texts = [NewPlant.properties.name, NewPlant.properties.tag, Plant.properties.name, Plant.properties.tag]
    for (const { pattern, allOf } of texts) {
      const patterns = [pattern, ...(allOf ?? []).map((part: TSchema) => part.pattern)]
      const expressions = patterns.map((each) => new RegExp(String(each), flags))
      const matches = (text: string) => expressions.every((expression) => expression.test(text))
      expect(KEPT.filter((text) => !matches(text))).toEqual([])
      expect(REFUSED.filter(matches)).toEqual([])
    }
  })

  test('the pattern that every dialect takes refuses U+0000', () => {
    const { pattern } = NewPlant.properties.name
    expect(REFUSED.filter((text) => !new RegExp(String(pattern)).test(text))).toEqual(
      REFUSED.filter((text) => text.includes('\0')),
    )
    // Escapes of any other kind stop the regular expressions of Go, Rust or Python from compiling.
    expect(String(pattern).match(/\\./g)).toEqual(['\\x'])
  })
})

describe('id', () => {
  test.each([INT64_MIN, -1n, 0n, 9007199254740993n, INT64_MAX])('%p is an id', (id) => {
    expect(newPlant.Check({ id, name: 'Fern' })).toBe(true)
  })

  test.each([[INT64_MIN - 1n], [INT64_MAX + 1n], [1], ['1'], [null], [undefined], [true], [[1n]]])(
    '%p is none',
    (id) => {
      expect(newPlant.Check({ id, name: 'Fern' })).toBe(false)
    },
  )

  test('is published as an int64, and is required', () => {
    expect(NewPlant.properties.id).toMatchObject({ type: 'integer', format: 'int64' })
    expect(NewPlant.required).toEqual(['id', 'name'])
    expect(Plant.required).toEqual(['name'])
  })
})

describe('what is returned of a plant', () => {
  test('is name and tag, without the id and without anything else', () => {
    const stored = { id: 1n, name: 'Fern', tag: 'indoor', owner: 'me' }

    expect(toPlant(stored)).toStrictEqual({ name: 'Fern', tag: 'indoor' })
  })

  test('has no tag where the plant has none, and an empty one where that is empty', () => {
    expect(Object.keys(toPlant({ name: 'Fern' }))).toEqual(['name'])
    expect(toPlant({ name: '', tag: '' })).toStrictEqual({ name: '', tag: '' })
  })
})
