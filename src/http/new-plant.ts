import { TypeCompiler } from '@sinclair/typebox/compiler'
import { AppError } from '../domain/error.ts'
import { parseInt64JsonNumber } from '../domain/int64.ts'
import { isOptional, NEW_PLANT_FIELDS, NewPlant } from '../domain/plant.ts'
import { readMembers } from './json-members.ts'

/** What a field must be, for a message. */
function ruleOf(field: keyof NewPlant): string {
  const value = field === 'id' ? ID_RULE : 'a string without U+0000 and without unpaired surrogates'
  return `\`${field}\` ${isOptional(field) ? 'must be left out or be' : 'is required and must be'} ${value}.`
}
const ID_RULE = 'a whole number from -9223372036854775808 to 9223372036854775807'

const newPlant = TypeCompiler.Compile(NewPlant)

/** Strict: what JSON takes for the same is the same, and nothing is coerced. Unknown properties are passed over. */
export const parseNewPlant = (body: Uint8Array): NewPlant => checkNewPlant(readFields(decode(body), NEW_PLANT_FIELDS))

/** Takes what `readFields` has read for a plant, or rejects with `plant_invalid`. */
export function checkNewPlant(plant: Fields<keyof NewPlant>): NewPlant {
  if (newPlant.Check(plant)) return plant
  const path = newPlant.Errors(plant).First()?.path.slice(1)
  const field = NEW_PLANT_FIELDS.find((name) => name === path)
  throw new AppError('plant_invalid', { message: field === undefined ? '' : ruleOf(field) })
}

/** A BOM stays what it is, and is no JSON. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of what is sent. Rejects with `body_not_json` where it is not UTF-8. */
export function decode(body: Uint8Array): string {
  try {
    return utf8.decode(body)
  } catch (cause) {
    throw new AppError('body_not_json', { cause })
  }
}

/** Members of an object by their names, each of which may be missing: strings, whole numbers as bigints, or what is neither. */
export type Fields<Name extends string> = Partial<Record<Name, unknown>>

/**
 * What an object in JSON has of these members. A number is exact at every digit. Rejects with `body_not_json`, or with
 * `plant_invalid` where it is no object.
 */
export const readFields = <Name extends string>(text: string, names: readonly Name[]): Fields<Name> =>
  readPlain(text, names) ?? readExactly(text, names)

/** Characters of a text up to which it is read at once where it is plain. */
export const PLAIN_LENGTH_MAX = 1024
/** Where no digit is followed by one of these, all numbers of a JSON text are written as whole numbers. */
const FRACTION_OR_EXPONENT = /\d[.eE]/

/**
 * What nearly everybody sends, in a fraction of the time: a short object with nothing nested in it, whose numbers are such
 * that a double holds exactly. Of anything else `undefined`; whether it is right is not decided here.
 */
function readPlain<Name extends string>(text: string, names: readonly Name[]): Fields<Name> | undefined {
  if (text.length > PLAIN_LENGTH_MAX || text.includes('[') || text.includes('{', 1)) return undefined
  if (FRACTION_OR_EXPONENT.test(text)) return undefined
  const object = parsed(text)
  if (typeof object !== 'object' || object === null) return undefined
  const fields: Fields<Name> = {}
  for (const name of names) {
    if (!Object.hasOwn(object, name)) continue
    const value: unknown = Reflect.get(object, name)
    if (typeof value !== 'number') fields[name] = value
    else if (Number.isSafeInteger(value)) fields[name] = BigInt(value)
    else return undefined
  }
  return fields
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The same of any text, each member from its own. */
function readExactly<Name extends string>(text: string, names: readonly Name[]): Fields<Name> {
  const sources = readMembers(text, names)
  if (sources === undefined) throw new AppError('plant_invalid')
  const fields: Fields<Name> = {}
  for (const name of names) {
    const source = sources[name]
    if (source !== undefined) fields[name] = fieldValue(source)
  }
  return fields
}

/** What a value's text means, if a field can have it: a string, or a whole number as a bigint. */
function fieldValue(source: string): unknown {
  if (source.startsWith('"')) return JSON.parse(source)
  return parseInt64JsonNumber(source) ?? null
}
