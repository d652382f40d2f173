import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type LineBytes, readLines, TOO_LONG } from '../../src/cli/plant-lines.ts'
import { expectProperty, PROPERTY_TIMEOUT_MS } from '../support/properties.ts'

const MAX_BYTES = 8

async function* chunksOf(chunks: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

async function read(chunks: readonly string[]): Promise<(string | symbol)[]> {
  const lines: LineBytes[] = []
  for await (const batch of readLines(chunksOf(chunks), MAX_BYTES)) lines.push(...batch)
  return lines.map((line) => (line === TOO_LONG ? line : Buffer.from(line).toString()))
}

describe('lines', () => {
  test.each([
    [[], []],
    [['a\nb'], ['a', 'b']],
    [['\n\na\n'], ['', '', 'a']],
    [['a\r\n'], ['a\r']],
    [['1234', '5678'], ['12345678']],
    [['123456789\na\n'], [TOO_LONG, 'a']],
    [
      ['a\n1234', '56789'],
      ['a', TOO_LONG],
    ],
  ])('of %j are %j', async (chunks, lines) => {
    expect(await read(chunks)).toEqual(lines)
  })

  test(
    'are the same wherever a text is cut',
    () =>
      expectProperty(
        'lines',
        fc.tuple(fc.array(fc.stringMatching(/^[a-z]{0,10}$/)), fc.array(fc.nat({ max: 60 }))),
        async ([texts, cuts]) => {
          const text = texts.map((each) => `${each}\n`).join('')
          const ends = [0, ...cuts.filter((cut) => cut < text.length).toSorted((a, b) => a - b), text.length]
          const chunks = ends.slice(1).map((end, index) => text.slice(ends[index], end))

          expect(await read(chunks)).toEqual(texts.map((each) => (each.length > MAX_BYTES ? TOO_LONG : each)))
        },
      ),
    PROPERTY_TIMEOUT_MS,
  )
})
