import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readLines } from '../../src/cli/plant-lines.ts'
import { expectProperty, PROPERTY_TIMEOUT_MS } from '../support/properties.ts'

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

  test(
    'are the same wherever a text is cut',
    () =>
      expectProperty(
        'lines',
        fc.tuple(fc.array(fc.stringMatching(/^[a-z]{0,8}$/)), fc.array(fc.nat({ max: 60 }))),
        async ([texts, cuts]) => {
          const text = texts.map((each) => `${each}\n`).join('')
          const ends = [0, ...cuts.filter((cut) => cut < text.length).toSorted((a, b) => a - b), text.length]
          const chunks = ends.slice(1).map((end, index) => text.slice(ends[index], end))

          expect(await read(chunks)).toEqual(texts)
        },
      ),
    PROPERTY_TIMEOUT_MS,
  )
})
