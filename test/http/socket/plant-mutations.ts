import fc from 'fast-check'
import { INT64_MAX, INT64_MIN } from '../../../src/domain/int64.ts'
import { anyId, anyPlant, anyStyle, membersOf, writeBody, writeString } from './plant-texts.ts'

/** A body that is refused, and the code with which the contract says so. */
export interface Mutated {
  readonly body: string | Uint8Array<ArrayBuffer>
  readonly contentType: string
  readonly code: number
}

/** The default of `--max-body`. */
const MAX_BODY_BYTES = 65536
const DEPTH_MAX = 64

const anyMembers = fc
  .tuple(anyPlant, anyStyle)
  .map(([plant, random]) => ({ members: membersOf(plant, random), write: random }))

const anyBody = anyMembers.map(({ members, write }) => writeBody(members, write))

/** A body in which the last property with one of these names has one of these values. */
const bodyWith = (names: readonly string[], values: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(anyMembers, fc.constantFrom(...names), values).map(([{ members, write }, name, value]) => {
    const others = members.filter(([other]) => other !== name)
    return writeBody([...others, [name, value]], write)
  })

/** Where in something a mutation is, as a share of its length. */
const anyPlace = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const placeIn = (length: number, place: number): number => Math.floor(length * place)

/** What is no number in JSON, though some of it is elsewhere. */
const NO_NUMBERS = [
  ...['01', '-01', '+1', '.5', '5.', '0x10', '1e', '1e+', '--1', '-', '1_000', '5n', 'NaN', 'Infinity', '٣', ''],
]
const NO_STRINGS = [
  ...["'Fern'", '`Fern`', 'Fern', '"Fern', '"\\x41"', '"\\u12"', '"\\u{41}"', '"\\', '""""'],
  ...['"\n"', '"\0"', '"\u001f"'],
]
const NO_VALUES = ['undefined', 'True', "'", '[1,]', '[1 2]', '{"a":}', '{a:1}', '/**/1', '1//']
const TOO_DEEP = [
  '['.repeat(DEPTH_MAX) + ']'.repeat(DEPTH_MAX),
  `${'{"":'.repeat(DEPTH_MAX)}1${'}'.repeat(DEPTH_MAX)}`,
  `${'[{"":'.repeat(DEPTH_MAX / 2)}1${'}]'.repeat(DEPTH_MAX / 2)}`,
]
/** Bytes that UTF-8 has nowhere (RFC 3629 §3): impossible ones, overlong forms, surrogates, past U+10FFFF. */
const NO_UTF8 = [[0xff], [0xc0, 0x80], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]

const NOT_JSON: readonly fc.Arbitrary<Mutated['body']>[] = [
  fc.tuple(anyBody, anyPlace).map(([body, place]) => body.slice(0, placeIn(body.trimEnd().length, place))),
  fc.tuple(anyBody, fc.constantFrom('}', ']', ',', '{}', 'x', '\0', '\u00a0', '\ufeff', '//')).map(([a, b]) => a + b),
  anyBody.map((body) => `\ufeff${body}`),
  anyBody.map((body) => `${body.trimEnd().slice(0, -1)},}`),
  anyBody.map((body) => body.replace('{', '{,')),
  bodyWith(['id'], fc.constantFrom(...NO_NUMBERS)),
  bodyWith(['name', 'tag'], fc.constantFrom(...NO_STRINGS)),
  bodyWith(['id', 'name', 'tag', 'x'], fc.constantFrom(...NO_VALUES, ...TOO_DEEP)),
  fc.tuple(anyBody, anyPlace, fc.constantFrom(...NO_UTF8)).map(([body, place, bytes]) => {
    const sent = new TextEncoder().encode(body)
    const index = placeIn(sent.length, place)
    return Uint8Array.from([...sent.subarray(0, index), ...bytes, ...sent.subarray(index)])
  }),
]

/** Fractions, and numbers past int64. */
const anyNoId: fc.Arbitrary<string> = fc.oneof(
  fc.tuple(anyId, fc.integer({ min: 0, max: 40 })).map(([id, zeros]) => `${id}.${'0'.repeat(zeros)}1`),
  fc.tuple(anyId, fc.bigInt(1n, 9n)).map(([id, digit]) => `${id * 10n + digit}E-1`),
  fc.bigInt(INT64_MAX + 1n, INT64_MAX * 100n).map(String),
  fc.bigInt(INT64_MIN * 100n, INT64_MIN - 1n).map((id) => `${id}.0`),
  fc.tuple(fc.constantFrom('', '-'), fc.integer({ min: 19, max: 10_000 })).map(([sign, e]) => `${sign}1e${e}`),
  fc.tuple(fc.constantFrom('', '-'), fc.integer({ min: 1, max: 10_000 })).map(([sign, e]) => `${sign}1e-${e}`),
)

/** A text with something in it that no store keeps, wherever. */
const anyNoText: fc.Arbitrary<string> = fc
  .tuple(anyPlant, anyPlace, fc.constantFrom('\0', '\ud800', '\udbff', '\udc00', '\udfff', '\udf31\ud83c'), anyStyle)
  .map(([{ name }, place, bad, write]) => {
    const chars = [...name]
    return writeString(chars.toSpliced(placeIn(chars.length + 1, place), 0, bad).join(''), write)
  })

const NO_PLANT: readonly fc.Arbitrary<Mutated['body']>[] = [
  fc.tuple(anyMembers, fc.constantFrom('id', 'name')).map(([{ members, write }, missing]) =>
    writeBody(
      members.filter(([name]) => name !== missing),
      write,
    ),
  ),
  bodyWith(['id'], fc.constantFrom('null', 'true', '"5"', '""', '[]', '[5]', '{}')),
  bodyWith(['name', 'tag'], fc.constantFrom('null', 'true', '5', '[]', '["Fern"]', '{}')),
  bodyWith(['id'], anyNoId),
  bodyWith(['name', 'tag'], anyNoText),
  anyMembers.map(({ members }) => `[${writeBody(members, () => 0)}]`),
  anyBody.map((body) => JSON.stringify(body.slice(0, 1000))),
  fc.constantFrom('null', 'true', '5', '""', '[]', '{}'),
]

const OTHER_TYPES = [
  ...['text/plain', 'application/x-www-form-urlencoded', 'application/jsonp', 'application/*', 'json'],
  ...['application/json; charset=utf-16', 'application/json, application/json'],
]

const tooLarge = fc.tuple(anyBody, fc.integer({ min: 1, max: 1000 })).map(([body, excess]) => {
  const padding = MAX_BODY_BYTES - Buffer.byteLength(body) + excess
  return body + ' '.repeat(padding)
})

const refusedWith = (
  code: number,
  bodies: readonly fc.Arbitrary<Mutated['body']>[],
  contentType = 'application/json',
) => bodies.map((body) => body.map((each): Mutated => ({ body: each, contentType, code })))

/** A plant of which one thing is not as the contract wants it. */
export const anyMutated: fc.Arbitrary<Mutated> = fc.oneof(
  ...refusedWith(40001, NOT_JSON),
  ...refusedWith(40002, NO_PLANT),
  fc.oneof(...refusedWith(41301, [tooLarge])),
  fc.oneof(...OTHER_TYPES.flatMap((type) => refusedWith(41501, [anyBody], type))),
)
