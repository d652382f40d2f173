import { describe, expect, test } from 'bun:test'
import { AppError } from '../../src/domain/error.ts'
import { PLAIN_LENGTH_MAX, parseNewPlant } from '../../src/http/new-plant.ts'
import { randomNumbers } from '../support/random.ts'
import { jsonText } from './support/json-texts.ts'
import { startService, TRANSPORTS } from './support/service.ts'

/** Enough white space for a body not to be short. */
const LONG = ' '.repeat(PLAIN_LENGTH_MAX)
const SEEDS = [1, 2, 3, 4]
const TEXTS_PER_SEED = 5000
const SAFE_MAX = '9007199254740991'

/** Numbers as an id is written, and the id: around where a double is exact, and where it only seems so. */
const IDS: readonly (readonly [number: string, id: bigint])[] = [
  ['0', 0n],
  ['-0', 0n],
  ['-0.0', 0n],
  ['0e-400', 0n],
  ['0e400', 0n],
  ['1', 1n],
  ['1e0', 1n],
  ['1E0', 1n],
  ['1e+2', 100n],
  ['5.0', 5n],
  ['50e-1', 5n],
  ['0.05e2', 5n],
  ['-5e0', -5n],
  [SAFE_MAX, 9007199254740991n],
  [`-${SAFE_MAX}`, -9007199254740991n],
  [`${SAFE_MAX}.0`, 9007199254740991n],
  [`${SAFE_MAX}0e-1`, 9007199254740991n],
  ['9007199254740992', 9007199254740992n],
  ['9007199254740993', 9007199254740993n],
  ['-9007199254740993', -9007199254740993n],
  ['9007199254740993.00', 9007199254740993n],
  ['9.007199254740993e15', 9007199254740993n],
]

/** Numbers that are no whole ones, though a double of many of them is. */
const FRACTIONS = [
  '4.9999999999999999999999',
  '5.0000000000000000000001',
  '-4.9999999999999999999999',
  '0.00000000000000000000000000000000000001e-300',
  '1e-400',
  '-1e-400',
  '1e-1',
  '15e-1',
  `${SAFE_MAX}.0000001`,
  '9007199254740990.99999999',
  '9007199254740992.5',
  `${SAFE_MAX}5e-1`,
]

/** Bodies with more than one number in them, and the id that counts; `undefined` where they are refused. */
const BODIES: readonly (readonly [body: string, id: bigint | undefined])[] = [
  // Texts that look like numbers.
  ['{"id":5,"name":"5e3"}', 5n],
  ['{"id":5,"name":"1.5","tag":"9007199254740993"}', 5n],
  ['{"id":9007199254740993,"name":"5e3","tag":"\\"id\\":6"}', 9007199254740993n],
  ['{"name":"\\"id\\":1.5","id":7}', 7n],
  ['{"id":5.0,"name":"","tag":"\\\\"}', 5n],
  ['{"id":4.9999999999999999999999,"name":"5"}', undefined],
  ['{"id":"5","name":"5.0"}', undefined],
  // The last of several counts, whatever those before are.
  ['{"id":1.5,"id":5,"name":"Fern"}', 5n],
  ['{"id":5,"id":1.5,"name":"Fern"}', undefined],
  ['{"id":5.0000000000000000000001,"id":5,"name":"Fern"}', 5n],
  ['{"id":5,"id":5.0000000000000000000001,"name":"Fern"}', undefined],
  ['{"id":5,"name":"Fern","id":4.9999999999999999999999}', undefined],
  ['{"id":9007199254740993,"id":9007199254740992,"name":"Fern"}', 9007199254740992n],
  ['{"id":9007199254740992,"id":9007199254740993,"name":"Fern"}', 9007199254740993n],
  ['{"id":9007199254740993,"id":5,"name":"Fern"}', 5n],
  ['{"id":5,"name":"1.5","id":6}', 6n],
  ['{"id":"5","id":5.0,"name":"Fern"}', 5n],
  ['{"id":5.0,"id":"5","name":"Fern"}', undefined],
  ['{"id":null,"id":[5.5],"id":50e-1,"name":"Fern"}', 5n],
  ['{"id":{"id":5},"id":6.0,"name":"Fern"}', 6n],
  ['{"id":6.0,"id":{"id":5},"name":"Fern"}', undefined],
  ['{"id":1.0,"\\u0069d":2.0,"name":"Fern"}', 2n],
  // Those of other objects do not count.
  ['{"id":9007199254740993,"name":"Fern","x":{"id":9007199254740995}}', 9007199254740993n],
  ['{"x":{"id":9007199254740995},"id":9007199254740993,"name":"Fern"}', 9007199254740993n],
  ['{"id":5.0,"name":"Fern","x":{"id":1.5,"x":[{"id":1e400},{"id":"5"},{"id":-0}]}}', 5n],
  ['{"x":[{"id":5}],"id":4.9999999999999999999999,"name":"Fern"}', undefined],
  ['{"x":{"id":5},"name":"Fern"}', undefined],
  ['{"id":{"id":9007199254740993},"name":"Fern"}', undefined],
  ['{"id":[9007199254740993],"name":"Fern"}', undefined],
  ['{"__proto__":{"id":5.0},"name":"Fern"}', undefined],
  ['{"__proto__":{"id":7},"id":5.0,"name":"Fern"}', 5n],
  ['{"id":5.0,"__proto__":{"id":7.0},"name":"Fern"}', 5n],
  ['{"id":5.0,"toString":1.5,"constructor":{"id":1.5},"name":"Fern"}', 5n],
  // Numbers beside it, exact or not.
  [`{"id":${SAFE_MAX},"name":"Fern","x":1.5}`, 9007199254740991n],
  ['{"id":9007199254740993,"name":"Fern","x":9007199254740995,"1.5":1e-400}', 9007199254740993n],
  ['{"id":5,"name":"Fern","":[0.1,1e400,-0]}', 5n],
]

const withId = (number: string) => `{"id":${number},"name":"Fern"}`

describe('the id of a body', () => {
  test.each(IDS)('that is written %s is %s', (number, id) => {
    expect(parse(withId(number))).toEqual({ id, name: 'Fern' })
    // Beside a number that makes the parser look at all digits, too.
    expect(parse(`{"x":1.5,"id":${number},"name":"Fern"}`)).toEqual({ id, name: 'Fern' })
  })

  test.each(FRACTIONS)('that is written %s is refused', (number) => {
    expect(parse(withId(number))).toBe('plant_invalid')
    expect(parse(`{"x":1.5,"id":${number},"name":"Fern"}`)).toBe('plant_invalid')
  })

  test.each(BODIES)('%s is %s', (body, id) => {
    const parsed = parse(body)

    expect(typeof parsed === 'string' ? parsed : parsed.id).toBe(id ?? 'plant_invalid')
  })
})

describe('a body', () => {
  test.each(SEEDS)('is the same plant or refusal whether it is short or long, with seed %i', (seed) => {
    const random = randomNumbers(seed)
    const seen: Record<string, number> = {}

    for (let count = 0; count < TEXTS_PER_SEED; count++) {
      const body = jsonText(random)
      const read = parseOnce(body)
      if (!Bun.deepEquals(parseOnce(LONG + body), read)) throw new Error(`two ways to read ${JSON.stringify(body)}`)
      const kind = typeof read === 'string' ? read : 'plant'
      seen[kind] = (seen[kind] ?? 0) + 1
    }

    for (const kind of ['plant', 'plant_invalid', 'body_not_json']) expect(seen[kind]).toBeGreaterThan(50)
  })
})

describe.each(TRANSPORTS)('the id of a body, $name', (transport) => {
  test('is that under which the plant is found, or the plant is refused', async () => {
    await using service = await startService(transport)
    const bodies = [
      ...IDS.map(([number, id]) => [withId(number), id] as const),
      ...FRACTIONS.map((number) => [withId(number), undefined] as const),
      ...BODIES,
    ]

    for (const [body, id] of bodies) {
      const { status } = await service.create(body)
      expect([body, status]).toEqual([body, id === undefined ? 400 : 200])
      if (id !== undefined) expect([body, (await service.delete(id)).status]).toEqual([body, 204])
    }
    expect(await service.names()).toEqual([])
  })
})

/** The plant of a body, or the kind of its refusal: whether it is short, and read at once, or long. */
function parse(body: string) {
  const read = parseOnce(body)
  expect(parseOnce(LONG + body)).toEqual(read)
  return read
}

function parseOnce(body: string) {
  try {
    return parseNewPlant(new TextEncoder().encode(body))
  } catch (error) {
    if (error instanceof AppError) return error.kind
    throw error
  }
}
