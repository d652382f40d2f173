import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { CSV_HEADER, readLines, readPlants, renderPlantCsv } from '../../src/cli/plant-lines.ts'
import { PLANT_FILES } from '../support/plant-files.ts'
import { expectProperty } from '../support/properties.ts'

const MAX_BYTES = 8

async function* chunksOf(chunks: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

async function read(chunks: readonly string[]): Promise<string[]> {
  const lines: Uint8Array[] = []
  for await (const batch of readLines(chunksOf(chunks), MAX_BYTES)) lines.push(...batch)
  return lines.map((line) => Buffer.from(line).toString())
}

describe('lines', () => {
  test.each([
    [[], []],
    [['a\nb'], ['a', 'b']],
    [['\n\na\n'], ['', '', 'a']],
    [['a\r\n'], ['a\r']],
    [['1234', '5678'], ['12345678']],
  ])('of %j are %j', async (chunks, lines) => {
    expect(await read(chunks)).toEqual(lines)
  })

  test.each([
    [['123456789\na\n'], ['123456789']],
    [
      ['a\n1234', '56789', 'b\n'],
      ['a', '123456789'],
    ],
    [['12345678', '9'], ['123456789']],
  ])('of %j end with the one that is too long: %j', async (chunks, lines) => {
    expect(await read(chunks)).toEqual(lines)
  })

  test('are the same wherever a text is cut', () =>
    expectProperty(
      'lines',
      fc.tuple(fc.array(fc.stringMatching(/^[a-z]{0,8}$/)), fc.array(fc.nat({ max: 60 }))),
      async ([texts, cuts]) => {
        const text = texts.map((each) => `${each}\n`).join('')
        const ends = [0, ...cuts.filter((cut) => cut < text.length).toSorted((a, b) => a - b), text.length]
        const chunks = ends.slice(1).map((end, index) => text.slice(ends[index], end))

        expect(await read(chunks)).toEqual(texts)
      },
    ))
})

const text = fc.string({
  unit: fc.oneof(fc.constantFrom(...',;"\n\r \t\ufeff=\0'), fc.string({ unit: 'binary', maxLength: 1 })),
})
const anyText = text.map((each) => each.toWellFormed().replaceAll('\0', ''))

test('plants come back from CSV wherever it is cut, but an empty tag is none', () =>
  expectProperty(
    'CSV',
    fc.tuple(
      fc.array(fc.record({ id: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), name: anyText, tag: anyText })),
      fc.integer({ min: 1, max: 9 }),
    ),
    async ([rows, size]) => {
      const plants = rows.map(({ id, name, tag }) => ({ user: 'me', id, plant: tag ? { name, tag } : { name } }))
      const bytes = Buffer.from(CSV_HEADER + renderPlantCsv(plants))
      const chunks = async function* () {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
      }
      const found: unknown[] = []
      for await (const { plant } of readPlants(chunks(), { user: 'me', maxLine: 9999 }, () => {})) found.push(plant)

      expect(found).toEqual(plants)
    },
  ))

test.each(PLANT_FILES)('%j is read as spreadsheets mean it', async (text, lines) => {
  const found: unknown[] = []
  for await (const { number, plant } of readPlants(chunksOf([text]), { user: 'me', maxLine: 9999 }, () => {}))
    found.push([`${number}`, typeof plant === 'string' ? plant : { id: Number(plant.id), ...plant.plant }])

  expect(found).toEqual(Object.entries(lines))
})

test('a field of a million quotes is read', async () => {
  const chunks = chunksOf(['id,name\n1,"', '""'.repeat(1_000_000), '"\n'])
  const names: unknown[] = []
  for await (const { plant } of readPlants(chunks, { user: 'me', maxLine: 3_000_000 }, () => {})) names.push(plant)

  expect(names).toEqual([{ user: 'me', id: 1n, plant: { name: '"'.repeat(1_000_000) } }])
})
