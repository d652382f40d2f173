import { describe, expect, test } from 'bun:test'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import fc from 'fast-check'
import { NewPlant, Plant } from '../../src/domain/plant.ts'
import { expectProperty } from '../support/properties.ts'

/** Texts for each run of the property, because one takes some microseconds. */
const TEXTS_PER_RUN = 100

const newPlant = TypeCompiler.Compile(NewPlant)
const plant = TypeCompiler.Compile(Plant)

/** Any UTF-16 units, so many of them NUL or surrogates that some pairs are whole and some are not. */
const anyUnits = fc
  .array(fc.oneof(fc.nat(0xffff), fc.constantFrom(0, 0xd83c, 0xdf31, 0xdbff, 0xdc00)), { maxLength: 6 })
  .map((units) => String.fromCharCode(...units))

describe('name and tag', () => {
  test('with U+0000 or an unpaired surrogate are refused, and no others', async () => {
    await expectProperty(
      'text',
      anyUnits,
      async (text) => {
        const isKept = text.isWellFormed() && !text.includes('\0')
        expect(newPlant.Check({ id: 1n, name: text })).toBe(isKept)
        expect(newPlant.Check({ id: 1n, name: 'Fern', tag: text })).toBe(isKept)
        expect(plant.Check({ name: text, tag: text })).toBe(isKept)
      },
      TEXTS_PER_RUN,
    )
  })

  test('are refused for one wrong character anywhere in a megabyte', () => {
    const long = '🌱'.repeat(250_000)

    expect(newPlant.Check({ id: 1n, name: long })).toBe(true)
    expect(
      [`\u0000${long}`, `${long}\u0000`, long.slice(1), long.slice(0, -1)].filter((text) =>
        newPlant.Check({ id: 1n, name: text }),
      ),
    ).toEqual([])
  })
})

// Validators and generated clients compile the pattern in their own dialect. For Go and Python see `bun run conformance`. Ruby, PHP
// and Java were tried by hand, because no other test needs them.
describe('the pattern of texts refuses U+0000 and nothing else', () => {
  const { pattern } = NewPlant.properties.name
  const texts = [
    ...['', ' ', 'Fern', '\u0001', 'two\nlines\r\n', '\u007f\u0080\u00ff', 'e\u0301', '\ud7ff', '\ue000', '\ufeff'],
    ...['\ufffe\uffff', '\u{10ffff}', '👩🏽‍🌾', '\\u0000', '\0', 'Fern\0', '\0Fern', 'a\0b', '🌱\0'],
  ]
  const matching = texts.filter((text) => !text.includes('\0'))

  test.each(['', 'u'])('in JavaScript, with the flags %p', (flags) => {
    expect(texts.filter((text) => new RegExp(pattern, flags).test(text))).toEqual(matching)
  })
})
