import { describe, expect, test } from 'bun:test'
import { storedText } from '../support/stored.ts'
import { startService, TRANSPORTS } from './support/service.ts'

const JSON_DEPTH_MAX = 64
const VALID = '{"id":1,"name":"Fern"}'

const bytes = (...parts: (string | readonly number[])[]) =>
  new Uint8Array(Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part)))))
const utf16 = (text: string) => new Uint8Array(Buffer.from(text, 'utf16le'))
/** A plant in whose ignored property arrays are nested, so that the whole is `levels` deep. */
const nested = (levels: number) => `{"id":1,"name":"Fern","x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
const nestedObjects = (levels: number) => `${'{"x":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`

const NOT_JSON: Readonly<Record<string, string | Uint8Array<ArrayBuffer>>> = {
  empty: '',
  'white space alone': ' \t\r\n',
  'a word': 'Fern',
  'a form': 'id=1&name=Fern',
  'cut off': VALID.slice(0, -1),
  'more after the end': `${VALID}}`,
  'two values': `${VALID}\n${VALID}`,
  'a trailing comma': '{"id":1,"name":"Fern",}',
  'a comment': `/* plant */${VALID}`,
  'single quotes': "{'id':1,'name':'Fern'}",
  'a name without quotes': '{id:1,name:"Fern"}',
  'no colon': '{"id" 1,"name":"Fern"}',
  'a leading zero': '{"id":01,"name":"Fern"}',
  'a plus sign': '{"id":+1,"name":"Fern"}',
  'a bare point': '{"id":1.,"name":"Fern"}',
  'a bare fraction': '{"id":.5,"name":"Fern"}',
  'a bare exponent': '{"id":1e,"name":"Fern"}',
  hexadecimal: '{"id":0x1,"name":"Fern"}',
  'a bigint literal': '{"id":1n,"name":"Fern"}',
  'not a number': '{"id":NaN,"name":"Fern"}',
  infinity: '{"id":Infinity,"name":"Fern"}',
  undefined: '{"id":1,"name":"Fern","x":undefined}',
  'a raw tab in a string': '{"id":1,"name":"Fe\trn"}',
  'a raw U+0000 in a string': '{"id":1,"name":"Fe\0rn"}',
  'an unknown escape': '{"id":1,"name":"\\x41"}',
  'half an escape': '{"id":1,"name":"\\u12"}',
  'a no-break space between tokens': '{"id":1,\u00a0"name":"Fern"}',
  'a BOM': bytes([0xef, 0xbb, 0xbf], VALID),
  'a BOM alone': bytes([0xef, 0xbb, 0xbf]),
  'a BOM in the middle': `{"id":1,\ufeff"name":"Fern"}`,
  'UTF-16': utf16(VALID),
  'UTF-16 with a BOM': bytes([0xff, 0xfe], [...utf16(VALID)]),
  'Latin-1': bytes('{"id":1,"name":"Gr', [0xfc], 'nlilie"}'),
  'an overlong encoding': bytes('{"id":1,"name":"', [0xc0, 0x80], '"}'),
  'an encoded surrogate': bytes('{"id":1,"name":"', [0xed, 0xa0, 0x80], '"}'),
  'a code point past U+10FFFF': bytes('{"id":1,"name":"', [0xf4, 0x90, 0x80, 0x80], '"}'),
  'half a character': bytes('{"id":1,"name":"', [0xe2, 0x82], '"}'),
  'bad UTF-8 in an ignored property': bytes('{"id":1,"name":"Fern","x":"', [0xff], '"}'),
  'bad UTF-8 after the end': bytes(VALID, [0xff]),
}

const TOO_DEEP: Readonly<Record<string, string>> = {
  'one level too many': nested(JSON_DEPTH_MAX + 1),
  'one array too many': '['.repeat(JSON_DEPTH_MAX + 1) + ']'.repeat(JSON_DEPTH_MAX + 1),
  'one object too many': nestedObjects(JSON_DEPTH_MAX + 1),
  'one object too many beside what makes a plant': `{"id":1,"name":"Fern","x":${nestedObjects(JSON_DEPTH_MAX)}}`,
  'all the body arrays': nested(30_000),
  'all the body brackets that nobody closes': '['.repeat(65_536),
  'one level too many behind a string that ends in a backslash': `{"x":"\\\\","y":${nested(JSON_DEPTH_MAX)}}`,
}

/** Bodies that are JSON and no plant, with the field that the message has to name and the rule that it has to say. */
const NO_PLANT: readonly (readonly [body: string, message: RegExp])[] = [
  ...['5', '"Fern"', 'null', 'true', '[]', `[${VALID}]`, '['.repeat(64) + ']'.repeat(64)].map(
    (body) => [body, /object/] as const,
  ),
  ['{}', /`id` is required/],
  ['{"name":"Fern"}', /`id` is required/],
  ['{"id":1}', /`name` is required/],
  ['{"id":1,"tag":"shade"}', /`name` is required/],
  ['{"ID":1,"Name":"Fern"}', /`id` is required/],
  ...['"5"', '""', 'null', 'true', 'false', '[]', '[5]', '{}', '{"id":5}', '5.5'].map(
    (value) => [`{"id":${value},"name":"Fern"}`, /`id`.*whole number from -9223372036854775808/] as const,
  ),
  ...['5', '1e3', 'null', 'true', '[]', '["Fern"]', '{}'].flatMap((value) => [
    [`{"id":1,"name":${value}}`, /`name`.*string/] as const,
    [`{"id":1,"name":"Fern","tag":${value}}`, /`tag`.*string/] as const,
  ]),
  ...['\\u0000', 'Fe\\u0000rn', '\\ud800', '\\udc00', 'Fe\\uD83Crn', '\\udf31\\ud83c', '\\ud83c\\ud83c\\udf31'].flatMap(
    (text) => [
      [`{"id":1,"name":"${text}"}`, /`name`.*U\+0000.*surrogates/] as const,
      [`{"id":1,"name":"Fern","tag":"${text}"}`, /`tag`.*U\+0000.*surrogates/] as const,
    ],
  ),
]

/** Bodies that mean a plant, and the plant that they mean. */
const PLANTS: readonly (readonly [body: string, plant: object])[] = [
  [' \t\r\n{ "id" : 1 ,\n"name"\t: "Fern" } \r\n', { name: 'Fern' }],
  ['{"\\u0069d":1,"n\\u0061me":"\\u0046ern"}', { name: 'Fern' }],
  ['{"id":1,"name":"","tag":""}', { name: '', tag: '' }],
  ['{"id":1,"name":"\\ud83c\\udf31 \\"\\\\\\/\\b\\f\\n\\r\\t\\u0001"}', { name: '🌱 "\\/\b\f\n\r\t\u0001' }],
  [
    '{"id":1,"name":"Grünlilie 🌱\u2028\u007f\uffff","tag":"\ufeff観葉"}',
    { name: 'Grünlilie 🌱\u2028\u007f\uffff', tag: '\ufeff観葉' },
  ],
  [`{"id":1,"name":"${'['.repeat(100)}\\"${'{'.repeat(100)}"}`, { name: `${'['.repeat(100)}"${'{'.repeat(100)}` }],
  [nested(JSON_DEPTH_MAX), { name: 'Fern' }],
  [`{"id":1,"name":"Fern","x":${nestedObjects(JSON_DEPTH_MAX - 1)}}`, { name: 'Fern' }],
  [`{"id":1,"name":"Fern","x":[${'[],'.repeat(100)}{}]}`, { name: 'Fern' }],
  ['{"id":1,"name":"Fern","x":"\\u0000","\\ud800":5,"y":null,"z":1e400}', { name: 'Fern' }],
  ['{"id":1,"name":"Fern","Tag":5,"plant":{"id":"x","name":5,"tag":null}}', { name: 'Fern' }],
  ['{"id":1,"name":"Fern","toString":5,"constructor":{"prototype":{"tag":"x"}},"valueOf":null}', { name: 'Fern' }],
  ['{"id":1,"name":"Fern","__proto__":{"tag":"x"}}', { name: 'Fern' }],
  ['{"id":1,"__proto__":{"name":"Ivy","id":7},"name":"Fern"}', { name: 'Fern' }],
  ['{"id":1,"name":"Fern","__proto__":null}', { name: 'Fern' }],
  ['{"id":"x","name":5,"tag":null,"id":1,"name":"Fern","tag":"shade"}', { name: 'Fern', tag: 'shade' }],
  ['{"id":2,"id":{"id":3},"id":1,"name":"Ivy","name":"Fern"}', { name: 'Fern' }],
]

/** Bodies whose required fields sit where nobody looks. */
const HIDDEN_FIELDS = [
  '{"__proto__":{"id":1,"name":"Fern"}}',
  '{"id":1,"__proto__":{"name":"Fern"}}',
  '{"constructor":{"prototype":{"id":1,"name":"Fern"}}}',
  '{"id":1,"name":"Fern","name":5}',
  '{"id":1,"name":"Fern","id":"1"}',
  '{"id":1,"name":"Fern","id":1.5}',
  '{"id":1,"name":"Fern","tag":"shade","tag":null}',
]

describe.each(TRANSPORTS)('the body of a new plant, $name', (transport) => {
  test('is refused with 40001 where it is no JSON in UTF-8', async () => {
    await using service = await startService(transport)

    for (const [name, body] of Object.entries(NOT_JSON)) {
      expect([name, await send(service, body)]).toEqual([name, refused(40001)])
    }
    expect(await service.names()).toEqual([])
  })

  test('is refused with 40001 where it is nested deeper than 64 levels', async () => {
    await using service = await startService(transport)

    for (const [name, body] of Object.entries(TOO_DEEP)) {
      expect([name, await send(service, body)]).toEqual([name, refused(40001, /64 levels/)])
    }
    expect(await service.names()).toEqual([])
  })

  test('is refused with 40002 where it is no plant, and the message names field and rule', async () => {
    await using service = await startService(transport)

    for (const [body, message] of NO_PLANT) {
      expect([body, await send(service, body)]).toEqual([body, refused(40002, message)])
    }
    expect(await service.names()).toEqual([])
  })

  test('is refused where a field is only inherited, or the last of its duplicates is wrong', async () => {
    await using service = await startService(transport)

    for (const body of HIDDEN_FIELDS) expect([body, await send(service, body)]).toEqual([body, refused(40002)])
    expect(await service.names()).toEqual([])
  })

  test('is taken for the plant that it means, and the rest is ignored', async () => {
    await using service = await startService(transport)

    for (const [body, plant] of PLANTS) {
      expect([body, await send(service, body)]).toEqual([body, { status: 200, body: plant }])
      expect((await service.list('?limit=5')).body).toEqual([plant])
      expect((await service.delete(1)).status).toBe(204)
    }
  })

  test('counts the last of two ids, to its last digit', async () => {
    await using service = await startService(transport)

    await send(service, '{"id":9007199254740993,"name":"Fern","id":9007199254740995}')

    expect((await service.delete('9007199254740993')).status).toBe(404)
    expect((await service.delete('9007199254740995')).status).toBe(204)
  })

  test('has no effect on the plants that come after it', async () => {
    await using service = await startService(transport)
    await send(service, '{"id":1,"name":"Fern","__proto__":{"tag":"x"},"constructor":{"prototype":{"tag":"x"}}}')

    expect(await send(service, '{"id":2,"name":"Ivy"}')).toEqual({ status: 200, body: { name: 'Ivy' } })
    expect(await send(service, '{"id":3}')).toEqual(refused(40002, /`name`/))
  })

  test('leaves nothing of an ignored property in answers, database and log', async () => {
    await using service = await startService(transport)
    const body = '{"id":1,"name":"Fern","colour":"chartreuse","x":{"chartreuse":["chartreuse"]}}'

    const created = await service.create(body)
    const listed = await service.list()

    const stored = await storedText(service.database)
    expect(stored).toContain('Fern')
    expect([created.text, listed.text, stored, service.logs()].join()).not.toContain('chartreuse')
  })
})

interface Creates {
  request(method: string, path: string, options: object): Promise<{ status: number; body: unknown }>
}

async function send(service: Creates, body: string | Uint8Array<ArrayBuffer>) {
  const answer = await service.request('POST', '/plants', { headers: { 'content-type': 'application/json' }, body })
  return { status: answer.status, body: answer.body }
}

const refused = (error: number, message = /\w/) => ({
  status: 400,
  body: { error, message: expect.stringMatching(message) },
})
