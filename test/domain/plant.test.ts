import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { $ } from 'bun'
import { NewPlant, Plant } from '../../src/domain/plant.ts'
import { makeFolder } from '../support/folder.ts'

const HAS_PCRE = Bun.spawnSync(['grep', '-P', 'a'], { stdin: Buffer.from('a') }).exitCode === 0

const newPlant = TypeCompiler.Compile(NewPlant)
const plant = TypeCompiler.Compile(Plant)

const KEPT = [
  ...[
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
  ],
  ...['\ufffd', '\ufffe\uffff', '\u{10000}', '\u{10ffff}', '🌱', '🌱🌱', 'a🌱b🌵c', '👩🏽‍🌾', '\\u0000'],
]
const REFUSED = [
  ...[
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
  ],
  ...['\udf31Fern', 'a\ud83cb\udf31c', '\udf31\ud83c', '\ud83c\ud83c\udf31', '🌱\ud83c', '🌱\udf31', '\ud83c🌱'],
]

describe('name and tag', () => {
  test('can be any text that both databases keep', () => {
    expect(KEPT.filter((text) => !newPlant.Check({ id: 1n, name: text, tag: text }))).toEqual([])
    expect(KEPT.filter((text) => !plant.Check({ name: text, tag: text }))).toEqual([])
  })

  test('with U+0000 or an unpaired surrogate are refused', () => {
    expect(REFUSED.filter((text) => newPlant.Check({ id: 1n, name: text }))).toEqual([])
    expect(REFUSED.filter((text) => newPlant.Check({ id: 1n, name: 'Fern', tag: text }))).toEqual([])
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

// Validators and generated clients compile the pattern in their own dialect. PHP uses PCRE, as `grep -P` does. For Go see
// `bun run conformance`. Ruby, PHP and Java were tried by hand, because no other test needs them.
describe('the pattern of texts refuses U+0000 and nothing else', () => {
  const { pattern } = NewPlant.properties.name
  const texts = [...KEPT, ...REFUSED].filter((text) => text.isWellFormed())
  const matching = texts.filter((text) => !text.includes('\0'))

  test.each(['', 'u'])('in JavaScript, with the flags %p', (flags) => {
    expect(texts.filter((text) => new RegExp(pattern, flags).test(text))).toEqual(matching)
  })

  test.skipIf(Bun.which('python3') === null)('in Python', async () => {
    const program =
      'import json, re, sys; p, texts = json.load(sys.stdin); print(json.dumps([t for t in texts if re.search(p, t)]))'
    const input = Buffer.from(JSON.stringify([pattern, texts]))

    expect(await $`python3 -I -c ${program} < ${input}`.json()).toEqual(matching)
  })

  test.skipIf(!HAS_PCRE)('in PCRE', async () => {
    using folder = makeFolder()
    const file = join(folder.path, 'pattern')
    await Bun.write(file, pattern)
    const lines = texts.filter((text) => !text.includes('\n'))
    const input = Buffer.from(`${lines.join('\n')}\n`)

    const kept = await $`grep --text --perl-regexp --file ${file} < ${input}`
      .env({ ...process.env, LC_ALL: 'C.UTF-8' })
      .text()

    expect(kept.slice(0, -1).split('\n')).toEqual(lines.filter((text) => matching.includes(text)))
  })
})
