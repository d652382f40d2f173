import fc from 'fast-check'
import { INT64_MAX, INT64_MIN } from '../../../src/domain/int64.ts'
import { isOptional, NEW_PLANT_FIELDS, type NewPlant, PLANT_FIELDS } from '../../../src/domain/plant.ts'
import { type Random, randomNumbers } from '../../support/random.ts'

/** UTF-16 units of a long text. Two such texts are within the default limit of bodies, even if all units are escapes. */
const LONG_UNITS = 4000

/** Any int64, more often one near the ends of int64 or near the largest number that a double holds exactly. */
export const anyInt64: fc.Arbitrary<bigint> = fc.oneof(
  fc.bigInt({ min: INT64_MIN, max: INT64_MAX }),
  fc.bigInt({ min: -30n, max: 30n }),
  fc
    .tuple(fc.constantFrom(INT64_MIN + 3n, -(2n ** 53n), 0n, 2n ** 53n, INT64_MAX - 3n), fc.bigInt(-3n, 3n))
    .map(([edge, offset]) => edge + offset),
)

const codePoints = (maxLength: number) =>
  fc.string({ unit: 'binary', maxLength }).map((text) => text.replaceAll('\0', '\u{10ffff}'))

/** Any text that a plant can have: all of Unicode except U+0000, empty and long. */
const anyText: fc.Arbitrary<string> = fc.oneof(
  codePoints(30),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.constantFrom('', ' ', '\ufeff', '\u2028\u2029', '\u0001\u001f\u007f', '\ufffe\uffff', '\ud7ff\ue000'),
  fc.constantFrom('null', '5', '"', '\\', '\\u0000', '\\ud83c', '{"id":1}', '__proto__', '%00', '<script>'),
  codePoints(8).map((text) => text.repeat(text === '' ? 0 : LONG_UNITS / text.length)),
)

/** Any plant with one of these ids, with each optional field or without. */
export const anyPlant = (id: fc.Arbitrary<bigint>) =>
  fc.record(
    { id, ...Object.fromEntries(PLANT_FIELDS.map((field) => [field, anyText])) },
    { requiredKeys: NEW_PLANT_FIELDS.filter((field) => !isOptional(field)) as ['id'] },
  ) as fc.Arbitrary<NewPlant>

/** A property of a JSON object: its name, and its value as JSON text. */
type Member = readonly [name: string, value: string]

/** Decides how a text is written. Shrinks to the plainest way. */
export const anyStyle: fc.Arbitrary<Random> = fc.nat().map((seed) => (seed === 0 ? () => 0 : randomNumbers(seed)))

/** The properties of a plant, each written in one of the ways that JSON allows. */
export const membersOf = (plant: NewPlant, random: Random): Member[] => [
  ['id', writeNumber(plant.id, random)],
  ...PLANT_FIELDS.flatMap((field) => {
    const text = plant[field]
    return text === undefined ? [] : [[field, writeString(text, random)] as const]
  }),
]

/** Properties that the server ignores, because a plant does not have them. */
const IGNORED: readonly Member[] = [
  ...['{}', '{"id":7,"name":"Ivy","tag":""}', '[]'].map((value) => ['__proto__', value] as const),
  ['constructor', '{"prototype":{"tag":"Ivy"}}'],
  ['toString', '1e400'],
  ['', '-0.0e-1'],
  ['Id', '"7"'],
  ['NAME', 'null'],
  ['tag ', 'true'],
  ['deep', `${'['.repeat(63)}"${'['.repeat(99)}"${']'.repeat(63)}`],
]
/** Values that the server ignores, because a later property has the same name. */
const OVERRIDDEN = ['null', '5.5', '"Ivy"', '{"id":7}', '[[7]]', '9223372036854775808', '"\\ud83c\\u0000"']

/** A body with these properties and with ignored ones, in one of the ways that JSON allows. */
export function writeBody(members: readonly Member[], random: Random): string {
  const own = shuffled(members, random)
  const before = own.filter(() => random(6) === 1).map(([name]) => [name, pick(OVERRIDDEN, random)] as const)
  const beside = IGNORED.filter(() => random(12) === 1)
  const all = [...before, ...shuffled([...own, ...beside], random)]
  const space = () => pick(['', '', '', ' ', '\n', '\t', '\r\n  '], random)
  const parts = all.map(
    ([name, value]) => `${space()}${writeString(name, random)}${space()}:${space()}${value}${space()}`,
  )
  return `${space()}{${parts.join(',')}}${space()}`
}

/** A whole number with or without a fraction and an exponent, each long or short. */
function writeNumber(number: bigint, random: Random): string {
  const sign = number < 0n || (number === 0n && random(4) === 1) ? '-' : ''
  const digits = String(number < 0n ? -number : number)
  const zeros = '0'.repeat(1 + random(30))
  const e = pick(['e', 'E'], random)
  const exponent = (value: number) =>
    e + (value < 0 ? '-' : pick(['', '+'], random)) + pick(['', '', '0', '000'], random) + Math.abs(value)
  const trailing = digits === '0' ? 0 : digits.length - digits.replace(/0+$/, '').length
  const point = 1 + random(digits.length)
  const forms = [
    () => digits,
    () => digits,
    () => `${digits}.${zeros}`,
    () => digits + exponent(0),
    () => `${digits}.${zeros}${exponent(0)}`,
    () => digits + (digits === '0' ? '' : zeros) + exponent(digits === '0' ? -random(500) : -zeros.length),
    () => digits.slice(0, digits.length - trailing) + exponent(trailing),
    () => `${digits.slice(0, point)}.${digits.slice(point)}0${exponent(digits.length - point)}`,
    () => `0.${zeros}${digits}${exponent(zeros.length + digits.length)}`,
  ]
  return sign + pick(forms, random)()
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  ...{ '"': '\\"', '\\': '\\\\', '/': '\\/' },
  ...{ '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t' },
}

/** A string in which any characters are escaped, in any way that JSON allows. */
function writeString(text: string, random: Random): string {
  const escapes = random(3)
  const written = [...text].map((char) => {
    const short = SHORT_ESCAPES[char]
    const needsEscape = char < ' ' || char === '"' || char === '\\' || !char.isWellFormed()
    if (!needsEscape && (escapes === 0 || random(escapes * 2) === 0)) return char
    return short !== undefined && random(2) === 0 ? short : unicodeEscape(char, random)
  })
  return `"${written.join('')}"`
}

/** A character as `\uXXXX`, once for each of its UTF-16 units. */
function unicodeEscape(char: string, random: Random): string {
  const units = Array.from({ length: char.length }, (_, index) => char.charCodeAt(index).toString(16).padStart(4, '0'))
  return units.map((hex) => `\\u${random(2) === 0 ? hex : hex.toUpperCase()}`).join('')
}

const pick = <T>(choices: readonly T[], random: Random): T => choices[random(choices.length)] as T

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const rest = [...items]
  return items.map(() => rest.splice(random(rest.length), 1)[0] as T)
}
