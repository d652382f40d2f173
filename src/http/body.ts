import { AppError } from '../domain/error.ts'
import { parseJson } from '../domain/json.ts'
import { toNewPlant } from '../domain/new-plant.ts'
import { nextTurn } from '../domain/next-turn.ts'
import type { NewPlant } from '../domain/plant.ts'
import { JSON_TYPE } from './json.ts'

/**
 * `application/json` with any parameters (RFC 9110 §8.3.1). Two `Content-Type` lines arrive joined by a comma, a space after
 * it, which are therefore taken nowhere. Each space
 * can be matched in one way only, so that no header takes more than linear time.
 */
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const PARAMETER = `;[ \\t]*(?:(${TOKEN})=(${TOKEN}|"(?:[^"\\\\,]|,(?! )|\\\\(?:[^,]|,(?! )))*")[ \\t]*)?`
const MEDIA_TYPE = new RegExp(`^application/json[ \\t]*((?:${PARAMETER})*)$`, 'i')
const PARAMETERS = new RegExp(PARAMETER, 'g')

/**
 * Reads the plant that a request carries. Rejects with `content_type_unsupported`, `content_encoding_unsupported`,
 * `body_too_large`, `body_not_json` or `plant_invalid`, in this order; nothing is read before the first two have been decided,
 * and no more than `maxBodyBytes`.
 */
export async function readNewPlant(request: Request, maxBodyBytes: number): Promise<NewPlant> {
  const { headers } = request
  requireJson(headers.get('content-type'))
  requireIdentity(headers.get('content-encoding'))
  const contentLength = headers.get('content-length')
  if (Number(contentLength) > maxBodyBytes) throw tooLarge(maxBodyBytes)
  try {
    // The runtime holds a body to its Content-Length; a chunked one is counted while it arrives.
    const body = contentLength === null ? readChunks(request, maxBodyBytes) : request.bytes()
    return toNewPlant(parseJson(await body))
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
    if (name?.toLowerCase() === 'charset' && !/^"?utf-8"?$/i.test(unquotePairs(value ?? ''))) {
      throw new AppError('content_type_unsupported', { message: 'The body must be UTF-8: send no other charset.' })
    }
  }
}

/** A list of codings, several lines of which arrive joined by commas (RFC 9110 §8.4). Its elements may be empty (§5.6.1.2). */
function requireIdentity(contentEncoding: string | null): void {
  if (contentEncoding === null) return
  const codings = contentEncoding.toLowerCase().split(',')
  const isIdentity = codings.every((coding) => ['', 'identity'].includes(coding.trim()))
  if (!isIdentity) throw new AppError('content_encoding_unsupported')
}

/** What a quoted string means by its pairs of a backslash and a character (RFC 9110 §5.6.4). */
const unquotePairs = (text: string): string => text.replace(/\\(.)/g, '$1')

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
  await nextTurn()
  if (signal.aborted) throw new AppError('body_not_json')
  return Buffer.concat(chunks)
}

const tooLarge = (maxBodyBytes: number) =>
  new AppError('body_too_large', { message: `The body is larger than ${maxBodyBytes} bytes: send a shorter one.` })
