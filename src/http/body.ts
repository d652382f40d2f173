import type { Static, TSchema } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { AppError } from '../domain/error.ts'
import { parseInt64JsonNumber } from '../domain/int64.ts'
import { NewPlant } from '../domain/plant.ts'
import { JSON_TYPE } from './json.ts'

/** Levels of arrays and objects in a body, the outermost included. */
export const JSON_DEPTH_MAX = 64

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
    const body = contentLength === null ? readChunks(request.body, maxBodyBytes) : request.bytes()
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

async function readChunks(body: Request['body'], maxBodyBytes: number): Promise<Uint8Array> {
  if (body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.byteLength
    if (bytes > maxBodyBytes) throw tooLarge(maxBodyBytes)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const tooLarge = (maxBodyBytes: number) =>
  new AppError('body_too_large', { message: `The body is larger than ${maxBodyBytes} bytes: send a shorter one.` })

/** Strict: what JSON takes for the same is the same, and nothing is coerced. Unknown properties are passed over. */
export function parseNewPlant(body: Uint8Array): NewPlant {
  const text = decode(body)
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new AppError('plant_invalid')
  const plant = ownProperties(value, NewPlant)
  if (typeof plant.id === 'number') plant.id = exactId(plant.id, text)
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

function parseJson(text: string): unknown {
  requireShallow(text)
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new AppError('body_not_json', { cause })
  }
}

/** Where no digit is followed by one of these, all numbers of a JSON text are written as whole numbers. */
const FRACTION_OR_EXPONENT = /\d[.eE]/

/**
 * The number as the bigint that its own digits are; one that is not a whole int64 stays a number, and is refused as
 * such. Where a double may have lost something, the text is parsed again with an eye on the digits (ECMA-262 JSON.parse
 * source text access), which takes several times as long.
 */
function exactId(id: number, text: string): unknown {
  if (Number.isSafeInteger(id) && !FRACTION_OR_EXPONENT.test(text)) return BigInt(id)
  const exactly = (key: string, value: unknown, context?: { readonly source?: string }): unknown =>
    key === 'id' && typeof value === 'number' ? (parseInt64JsonNumber(context?.source ?? '') ?? value) : value
  return Reflect.get(JSON.parse(text, exactly), 'id')
}

/** Before parsing, because deep nesting costs the parser much time or its stack. Brackets in strings do not count. */
function requireShallow(text: string): void {
  if (text.length <= JSON_DEPTH_MAX) return
  let depth = 0
  let isInString = false
  for (let index = 0; index < text.length; index++) {
    const char = text.charCodeAt(index)
    if (isInString) {
      if (char === BACKSLASH) index++
      else if (char === QUOTE) isInString = false
    } else if (char === QUOTE) {
      isInString = true
    } else if (char === OPEN_BRACE || char === OPEN_BRACKET) {
      if (++depth > JSON_DEPTH_MAX) throw new AppError('body_not_json')
    } else if (char === CLOSE_BRACE || char === CLOSE_BRACKET) {
      depth--
    }
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** The properties that the schema knows and the object itself has, so that `__proto__` and its like reach nothing. */
function ownProperties(
  value: object,
  schema: { readonly properties: Readonly<Record<string, TSchema>> },
): Record<string, unknown> {
  const own: Record<string, unknown> = {}
  for (const name of Object.keys(schema.properties)) {
    if (Object.hasOwn(value, name)) own[name] = Reflect.get(value, name)
  }
  return own
}

const isField = (name: string | undefined): name is keyof Static<typeof NewPlant> =>
  name !== undefined && Object.hasOwn(FIELD_RULES, name)
