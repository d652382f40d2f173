import { describe, expect, test } from 'bun:test'
import { JSON_DEPTH_MAX } from '../../src/domain/new-plant.ts'
import { storedText } from '../support/stored.ts'
import { type Service, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

const PLANT = '{"id":1,"name":"Fern"}'

const bytes = (...parts: (string | readonly number[])[]) =>
  new Uint8Array(Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part)))))
const utf16 = (text: string) => new Uint8Array(Buffer.from(text, 'utf16le'))
/** A plant with an ignored property in which arrays are nested, so that the body is `levels` deep. */
const nested = (levels: number) => `{"id":1,"name":"Fern","x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
const nestedObjects = (levels: number) => `${'{"x":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`

/** test/domain/json.test.ts compares far more texts with `JSON.parse`. */
const NOT_JSON: Readonly<Record<string, string | Uint8Array<ArrayBuffer>>> = {
  empty: '',
  'white space alone': ' \t\r\n',
  'a form': 'id=1&name=Fern',
  'cut off': PLANT.slice(0, -1),
  'a leading zero': '{"id":01,"name":"Fern"}',
  'a raw U+0000 in a string': '{"id":1,"name":"Fe\0rn"}',
  'a BOM': bytes([0xef, 0xbb, 0xbf], PLANT),
  'UTF-16': utf16(PLANT),
  'Latin-1': bytes('{"id":1,"name":"Gr', [0xfc], 'nlilie"}'),
  'an overlong encoding': bytes('{"id":1,"name":"', [0xc0, 0x80], '"}'),
  'bad UTF-8 in an ignored property': bytes('{"id":1,"name":"Fern","x":"', [0xff], '"}'),
  gzip: Bun.gzipSync(PLANT),
}

const TOO_DEEP: Readonly<Record<string, string>> = {
  'one array too many': nested(JSON_DEPTH_MAX + 1),
  'one object too many': nestedObjects(JSON_DEPTH_MAX + 1),
  'as many open brackets as fit': '['.repeat(65_536),
}

const NO_TEXTS = ['5', 'null', 'true', '["Fern"]', '{}', '"Fe\\u0000rn"', '"\\ud800"', '"\\udf31\\ud83c"']

/** Bodies that are JSON and not a plant, with the field and the rule that the message has to name. */
const NO_PLANT: readonly (readonly [body: string, message: RegExp])[] = [
  ...['5', '"Fern"', 'null', 'true', '[]', `[${PLANT}]`].map((body) => [body, /object/] as const),
  ['{}', /`id` is required/],
  ['{"name":"Fern"}', /`id` is required/],
  ['{"id":1,"tag":"shade"}', /`name` is required/],
  ...['"5"', 'null', 'true', '[5]', '{"id":5}', '5.5', '9223372036854775808'].map(
    (value) => [`{"id":${value},"name":"Fern"}`, /`id`.*whole number from -9223372036854775808/] as const,
  ),
  ...NO_TEXTS.flatMap((value) => [
    [`{"id":1,"name":${value}}`, /`name` is required .* string without U\+0000 .* surrogates/] as const,
    [
      `{"id":1,"name":"Fern","tag":${value}}`,
      /`tag` must be left out .* string without U\+0000 .* surrogates/,
    ] as const,
  ]),
  // Fields that are only inherited.
  ['{"__proto__":{"id":1,"name":"Fern"}}', /`id` is required/],
  ['{"id":1,"__proto__":{"name":"Fern"}}', /`name` is required/],
  ['{"constructor":{"prototype":{"id":1,"name":"Fern"}}}', /`id` is required/],
  // The last of several counts.
  ['{"id":1,"name":"Fern","name":5}', /`name`/],
  ['{"id":1,"name":"Fern","id":1.5}', /`id`/],
  ['{"id":1,"name":"Fern","tag":"shade","tag":null}', /`tag`/],
]

/** Bodies that mean a plant, and the plant. */
const PLANTS: readonly (readonly [body: string, plant: object])[] = [
  [' \t\r\n{ "id" : 1 ,\n"name"\t: "Fern" } \r\n', { name: 'Fern' }],
  ['{"id":1,"name":"","tag":""}', { name: '', tag: '' }],
  // test/domain/int64.test.ts has all notations of a number.
  ['{"id":100e-2,"name":"Fern"}', { name: 'Fern' }],
  ['{"id":1,"name":"\\ud83c\\udf31 \\"\\\\\\/\\b\\f\\n\\r\\t\\u0001"}', { name: '🌱 "\\/\b\f\n\r\t\u0001' }],
  [
    '{"id":1,"name":"Grünlilie 🌱\u2028\uffff","tag":"\ufeff観葉"}',
    { name: 'Grünlilie 🌱\u2028\uffff', tag: '\ufeff観葉' },
  ],
  [`{"id":1,"name":"${'['.repeat(100)}\\"${'{'.repeat(100)}"}`, { name: `${'['.repeat(100)}"${'{'.repeat(100)}` }],
  [nested(JSON_DEPTH_MAX), { name: 'Fern' }],
  [`{"id":1,"name":"Fern","x":${nestedObjects(JSON_DEPTH_MAX - 1)}}`, { name: 'Fern' }],
  ['{"id":1,"name":"Fern","x":"\\u0000","\\ud800":5,"y":null,"z":1e400}', { name: 'Fern' }],
  ['{"id":1,"name":"Fern","Tag":5,"plant":{"id":"x","name":5,"tag":null}}', { name: 'Fern' }],
  ['{"id":1,"name":"Fern","toString":5,"constructor":{"prototype":{"tag":"x"}},"valueOf":null}', { name: 'Fern' }],
  ['{"id":1,"__proto__":{"name":"Ivy","tag":"x","id":7},"name":"Fern"}', { name: 'Fern' }],
  ['{"0":"Ivy","1":"x","length":2,"id":1,"name":"Fern"}', { name: 'Fern' }],
  ['{"id":"x","name":5,"tag":null,"id":1,"name":"Fern","tag":"shade"}', { name: 'Fern', tag: 'shade' }],
]

describe.each(TRANSPORTS)('the body of a create, $name', (transport) => {
  test.each<[title: string, error: number, bodies: readonly Refused[]]>([
    ['40001 if it is not JSON in UTF-8', 40001, Object.entries(NOT_JSON).map((entry) => [...entry, /\w/])],
    ['40001 if it has more than 64 levels', 40001, Object.entries(TOO_DEEP).map((entry) => [...entry, /64 levels/])],
    ['40002, field and rule if it is not a plant', 40002, NO_PLANT.map(([body, message]) => [body, body, message])],
  ])('is refused with %s', async (_, error, bodies) => {
    await using service = await startService(transport)

    for (const [name, body, message] of bodies) {
      expect([name, await send(service, body)]).toEqual([
        name,
        { status: 400, body: { error, message: expect.stringMatching(message) } },
      ])
    }
    expect(await service.names()).toEqual([])
  })

  test('is taken for the plant that it means, and other properties are ignored', async () => {
    await using service = await startService(transport)
    const shared = Reflect.ownKeys(Object.prototype)

    for (const [body, plant] of PLANTS) {
      expect([body, await send(service, body)]).toEqual([body, { status: 200, body: plant }])
      expect((await service.list('?limit=5')).body).toEqual([plant])
      expect((await service.delete(1)).status).toBe(204)
    }
    // In process, no body may change the prototype of all objects.
    expect(Reflect.ownKeys(Object.prototype)).toEqual(shared)
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

type Refused = readonly [name: string, body: string | Uint8Array<ArrayBuffer>, message: RegExp]

async function send(service: Service, body: string | Uint8Array<ArrayBuffer>) {
  const answer = await service.request('POST', '/plants', { headers: { 'content-type': 'application/json' }, body })
  return { status: answer.status, body: answer.body }
}

const LIMIT_BYTES = 1000
const DEFAULT_LIMIT_BYTES = 64 * 1024
const REFUSAL = { error: 41301, message: expect.stringMatching(/larger/) }

/** The status and the body of a create. */
async function create(service: Service, plant: string) {
  const { status, body } = await service.create(plant)
  return [status, body]
}

describe.each(TRANSPORTS)('a body, $name', (transport) => {
  test('is taken if it has 64 KiB, and refused if it is a byte longer', async () => {
    await using service = await startService(transport)
    const name = 'x'.repeat(DEFAULT_LIMIT_BYTES - '{"id":1,"name":""}'.length)

    expect(await create(service, `{"id":1,"name":"${name}"}`)).toEqual([200, { name }])
    expect(await create(service, `{"id":2,"name":"${name}x"}`)).toEqual([413, REFUSAL])
    expect(await service.names()).toEqual([name])
  })

  test('is taken up to --max-body, in bytes and not in characters', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    const name = `xx${'🌿'.repeat(245)}`
    const body = `{"id":1,"name":"${name}"}`
    expect(Buffer.byteLength(body)).toBe(LIMIT_BYTES)

    expect(await create(service, `${body} `)).toEqual([413, REFUSAL])
    expect(await create(service, body)).toEqual([200, { name }])
  })
})
