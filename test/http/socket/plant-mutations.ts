import fc from 'fast-check'
import { INT64_MAX, INT64_MIN } from '../../../src/domain/int64.ts'
import { JSON_DEPTH_MAX } from '../../../src/domain/json.ts'
import { isOptional, NEW_PLANT_FIELDS, PLANT_FIELDS } from '../../../src/domain/plant.ts'
import { anyId, anyPlant, anyStyle, anyText, membersOf, writeBody, writeString } from './plant-texts.ts'

type Body = string | Uint8Array<ArrayBuffer>

/** A body that the server refuses, and the code of the refusal. */
export interface Mutated {
  readonly body: Body
  readonly contentType: string
  readonly code: number
}

/** The default of `--max-body`. */
const MAX_BODY_BYTES = 65536

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

/** Where a mutation is in a text, as a share of its length. */
const anyPlace = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
const placeIn = (length: number, place: number): number => Math.floor(length * place)

const TOO_DEEP = [
  '['.repeat(JSON_DEPTH_MAX) + ']'.repeat(JSON_DEPTH_MAX),
  `${'{"":'.repeat(JSON_DEPTH_MAX)}1${'}'.repeat(JSON_DEPTH_MAX)}`,
]
/** Bytes that are never UTF-8 (RFC 3629 §3): impossible bytes, overlong forms, surrogates, past U+10FFFF. */
const NO_UTF8 = [[0xff], [0xc0, 0x80], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]

/** test/domain/json.test.ts tries far more texts that are not JSON. */
const NOT_JSON: readonly fc.Arbitrary<Body>[] = [
  fc.tuple(anyBody, anyPlace).map(([body, place]) => body.slice(0, placeIn(body.trimEnd().length, place))),
  fc.tuple(anyBody, fc.constantFrom('}', ',', '{}', 'x', '\0', '\u00a0', '\ufeff', '//')).map(([a, b]) => a + b),
  anyBody.map((body) => `\ufeff${body}`),
  bodyWith([...NEW_PLANT_FIELDS, 'x'], fc.constantFrom('', '01', '5.', "'Fern'", '"\n"', 'NaN', ...TOO_DEEP)),
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
  fc
    .tuple(fc.constantFrom('1e', '-1e', '1e-', '-1e-'), fc.integer({ min: 19, max: 10_000 }))
    .map((parts) => parts.join('')),
)

/** A text with U+0000 or an unpaired surrogate in it. */
const anyNoText: fc.Arbitrary<string> = fc
  .tuple(anyText, anyPlace, fc.constantFrom('\0', '\ud800', '\udbff', '\udc00', '\udfff', '\udf31\ud83c'), anyStyle)
  .map(([text, place, bad, write]) => {
    const chars = [...text]
    return writeString(chars.toSpliced(placeIn(chars.length + 1, place), 0, bad).join(''), write)
  })

const NO_PLANT: readonly fc.Arbitrary<Body>[] = [
  fc
    .tuple(anyMembers, fc.constantFrom(...NEW_PLANT_FIELDS.filter((field) => !isOptional(field))))
    .map(([{ members, write }, missing]) =>
      writeBody(
        members.filter(([name]) => name !== missing),
        write,
      ),
    ),
  bodyWith(['id'], fc.oneof(anyNoId, fc.constantFrom('null', 'true', '"5"', '""', '[]', '[5]', '{}'))),
  bodyWith(PLANT_FIELDS, fc.oneof(anyNoText, fc.constantFrom('null', 'true', '5', '[]', '["Fern"]', '{}'))),
  anyMembers.map(({ members }) => `[${writeBody(members, () => 0)}]`),
  fc.constantFrom('null', 'true', '5', '"{}"', '[]', '{}'),
]

const TOO_LARGE: readonly fc.Arbitrary<Body>[] = [
  fc
    .tuple(anyBody, fc.integer({ min: 1, max: 1000 }))
    .map(([body, excess]) => body + ' '.repeat(MAX_BODY_BYTES - Buffer.byteLength(body) + excess)),
]

const refusedWith = (code: number, bodies: readonly fc.Arbitrary<Body>[], contentType = 'application/json') =>
  bodies.map((body) => body.map((each): Mutated => ({ body: each, contentType, code })))

/** A plant with one mistake. */
export const anyMutated: fc.Arbitrary<Mutated> = fc.oneof(
  ...refusedWith(40001, NOT_JSON),
  ...refusedWith(40002, NO_PLANT),
  ...refusedWith(41301, TOO_LARGE),
  ...refusedWith(41501, [anyBody], 'text/plain'),
)
