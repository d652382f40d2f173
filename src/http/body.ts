import type { Static } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { AppError } from '../domain/error.ts'
import { parseInt64JsonNumber } from '../domain/int64.ts'
import { NewPlant } from '../domain/plant.ts'
import { JSON_TYPE } from './json.ts'
import { readMembers } from './json-members.ts'

/**
 * `application/json` with any parameters (RFC 9110 §8.3.1). Two `Content-Type` lines arrive joined by a comma, a space after
 * it, which are therefore taken nowhere. Each space
 * can be matched in one way only, so that no header takes more than linear time.
 */
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const PARAMETER = `;[ \\t]*(?:(${TOKEN})=(${TOKEN}|"(?:[^"\\\\,]|,(?! )|\\\\(?:[^,]|,(?! )))*")[ \\t]*)?`
const MEDIA_TYPE = new RegExp(`^application/json[ \\t]*((?:${PARAMETER})*)$`, 'i')
const PARAMETERS = new RegExp(PARAMETER, 'g')

const FIELD_RULES: Readonly<Record<keyof NewPlant, string>> = {
  id: '`id` is required and must be a whole number from -9223372036854775808 to 9223372036854775807.',
  name: '`name` is required and must be a string without U+0000 and without unpaired surrogates.',
  tag: '`tag` must be left out or be a string without U+0000 and without unpaired surrogates.',
}

const newPlant = TypeCompiler.Compile(NewPlant)

/**
 * Reads the plant that a request carries. Rejects with `content_type_unsupported`, `body_too_large`, `body_not_json` or
 * `plant_invalid`, in this order; nothing is read before the first has been decided, and no more than `maxBodyBytes`.
 */
export async function readNewPlant(request: Request, maxBodyBytes: number): Promise<NewPlant> {
  const { headers } = request
  requireJson(headers.get('content-type'))
  const contentLength = headers.get('content-length')
  if (Number(contentLength) > maxBodyBytes) throw tooLarge(maxBodyBytes)
  try {
    // The runtime holds a body to its Content-Length; a chunked one is counted while it arrives.
    const body = contentLength === null ? readChunks(request, maxBodyBytes) : request.bytes()
    return parseNewPlant(await body)
  } catch (cause) {
    // The client went away in the middle: half a body is no JSON, and nobody's bug.
    throw cause instanceof AppError ? cause : new AppError('body_not_json', { cause })
  }
}

function requireJson(contentType: string | null): void {
  // As nearly everybody writes it.
  if (contentType === JSON_TYPE) return
  const parameters = MEDIA_TYPE.exec(contentType ?? '')?.[1]
  if (parameters === undefined) throw new AppError('content_type_unsupported')
  for (const [, name, value] of parameters.matchAll(PARAMETERS)) {
    if (name?.toLowerCase() === 'charset' && !/^"?utf-8"?$/i.test(value ?? '')) {
      throw new AppError('content_type_unsupported', { message: 'The body must be UTF-8: send no other charset.' })
    }
  }
}

async function readChunks({ body, signal }: Request, maxBodyBytes: number): Promise<Uint8Array> {
  if (body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.byteLength
    if (bytes > maxBodyBytes) throw tooLarge(maxBodyBytes)
    chunks.push(chunk)
  }
  // The runtime says that the body is over before it looks at what is behind the last chunk. Where it refuses that (with a
  // 400 of its own, and the end of the connection), nothing is to be stored.
  await new Promise((resolve) => setImmediate(resolve))
  if (signal.aborted) throw new AppError('body_not_json')
  return Buffer.concat(chunks)
}

const tooLarge = (maxBodyBytes: number) =>
  new AppError('body_too_large', { message: `The body is larger than ${maxBodyBytes} bytes: send a shorter one.` })

/** Strict: what JSON takes for the same is the same, and nothing is coerced. Unknown properties are passed over. */
export function parseNewPlant(body: Uint8Array): NewPlant {
  const text = decode(body)
  const plant = readPlain(text) ?? readExactly(text)
  if (newPlant.Check(plant)) return plant
  const field = newPlant.Errors(plant).First()?.path.slice(1)
  throw new AppError('plant_invalid', { message: isField(field) ? FIELD_RULES[field] : '' })
}

/** A BOM stays what it is, and is no JSON. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(body: Uint8Array): string {
  try {
    return utf8.decode(body)
  } catch (cause) {
    throw new AppError('body_not_json', { cause })
  }
}

/** The properties that a plant has, by whatever was sent for them. */
type Fields = Partial<Record<keyof NewPlant, unknown>>

/** Characters of a body up to which it is read at once where it is plain. */
export const PLAIN_LENGTH_MAX = 1024
/** Where no digit is followed by one of these, all numbers of a JSON text are written as whole numbers. */
const FRACTION_OR_EXPONENT = /\d[.eE]/

/**
 * What nearly everybody sends, in a fraction of the time: a short object with nothing nested in it, whose id is one that
 * a double holds exactly. Of anything else `undefined`; whether it is right is not decided here.
 */
function readPlain(text: string): Fields | undefined {
  if (text.length > PLAIN_LENGTH_MAX || text.includes('[') || text.includes('{', 1)) return undefined
  if (FRACTION_OR_EXPONENT.test(text)) return undefined
  const value = parsed(text)
  if (typeof value !== 'object' || value === null) return undefined
  const fields: Fields = {}
  for (const name of FIELDS) if (Object.hasOwn(value, name)) fields[name] = Reflect.get(value, name)
  if (!Number.isSafeInteger(fields.id)) return undefined
  fields.id = BigInt(Number(fields.id))
  return fields
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The fields of any body, each from its own text. */
function readExactly(text: string): Fields {
  const sources = readMembers(text, FIELDS)
  if (sources === undefined) throw new AppError('plant_invalid')
  const fields: Fields = {}
  for (const name of FIELDS) if (sources[name] !== undefined) fields[name] = fieldValue(sources[name])
  return fields
}

/** What a value's text means, if a field can have it: a string, or a whole number as a bigint. */
function fieldValue(source: string): unknown {
  if (source.startsWith('"')) return JSON.parse(source)
  return parseInt64JsonNumber(source) ?? null
}

const FIELDS = ['id', 'name', 'tag'] as const satisfies readonly (keyof NewPlant)[]

const isField = (name: string | undefined): name is keyof Static<typeof NewPlant> =>
  name !== undefined && Object.hasOwn(FIELD_RULES, name)
