// Tested in test/http/socket/bodies.test.ts.
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { NewPlant } from '../domain/plant.ts'
import { AppError } from '../error.ts'
import { parseJson, toNewPlant } from '../formats/plant-json.ts'
import { endUnanswered, JSON_TYPE } from './answers.ts'
import { HTTP_DEADLINES } from './options.ts'

/**
 * Reads the plant that a request carries, from at most `maxBodyBytes`. The body may lack an `id` that the path has. Rejects
 * with the first that applies of `content_type_unsupported`, `content_encoding_unsupported`, `body_too_large`, `body_not_json`
 * and `plant_invalid`. The headers decide before the body is read. Resolves to `undefined` if the connection ends before the body.
 */
export async function readNewPlant(
  request: Request,
  headers: Readonly<Record<string, string | undefined>>,
  maxBodyBytes: number,
  pathId?: bigint,
): Promise<NewPlant | undefined> {
  const { 'content-type': type = '', 'content-encoding': encoding, 'content-length': length } = headers
  if (type !== JSON_TYPE && !JSON_IN_UTF8.test(type)) throw new AppError('content_type_unsupported')
  if (encoding && encoding.toLowerCase() !== 'identity') throw new AppError('content_encoding_unsupported')
  // The runtime takes only digits. It is `NaN` without a length, and for two equal lines, which the runtime joins with a comma.
  const declaredBytes = Number(length)
  if (declaredBytes > maxBodyBytes) throw tooLarge(maxBodyBytes)
  let body: Uint8Array
  try {
    // `bytes` has no bound, but the runtime cuts a body at its declared length. It costs a quarter of reading chunks.
    body = await (declaredBytes <= maxBodyBytes ? request.bytes() : readChunks(request, maxBodyBytes))
  } catch (error) {
    if (error instanceof AppError) throw error
    return undefined
  }
  const value = parseJson(body)
  if (pathId === undefined || typeof value !== 'object' || value === null || Array.isArray(value))
    return toNewPlant(value)
  if ('id' in value && value.id !== pathId)
    throw new AppError('plant_invalid', { message: '`id` must be left out or be that of the path.' })
  return toNewPlant({ ...value, id: pathId })
}

/**
 * `application/json` with any parameters (RFC 9110 §8.3.1), but no other `charset` than UTF-8. The runtime joins two
 * `Content-Type` lines with a comma and a space, so this refuses the two characters even in a quoted value. Each space matches
 * in one place only, so that the time is linear.
 */
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const QUOTED = '"(?:[^"\\\\,]|,(?! )|\\\\(?:[^,]|,(?! )))*"'
const PARAMETER = `(?:charset=(?:utf-8|"utf-8")|(?!charset=)${TOKEN}=(?:${TOKEN}|${QUOTED}))[ \\t]*`
const JSON_IN_UTF8 = new RegExp(`^application/json[ \\t]*(?:;[ \\t]*(?:${PARAMETER})?)*$`, 'i')

async function readChunks({ body, signal }: Request, maxBodyBytes: number): Promise<Uint8Array> {
  if (body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let bytes = 0
  // `answerAfterBody` reads the rest of a body that is too large.
  for await (const chunk of body.values({ preventCancel: true })) {
    bytes += chunk.byteLength
    if (bytes > maxBodyBytes) throw tooLarge(maxBodyBytes)
    chunks.push(chunk)
  }
  // The runtime ends the body before it parses the bytes behind the last chunk. If they are malformed, it answers 400 itself and
  // aborts the request: then nothing may be stored.
  await nextTurn()
  if (signal.aborted) throw new AppError('body_not_json')
  return Buffer.concat(chunks)
}

const tooLarge = (maxBodyBytes: number) =>
  new AppError('body_too_large', { message: `The body is larger than ${maxBodyBytes} bytes: send a shorter one.` })

/** Whether a body follows the head of a request. The runtime hides that of GET and HEAD. */
export const hasRequestBody = ({ headers }: Request): boolean =>
  (headers.get('content-length') ?? '0') !== '0' || headers.has('transfer-encoding')

/** What a promise resolves to; `undefined` if it does not within `maxMs`. */
export function withinTime<T>(promise: Promise<T>, maxMs: number): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, maxMs)
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/**
 * Discards a body as it arrives, and resolves to the answer once the body has ended. A proxy that gets the answer earlier may
 * stop sending the body, and use the connection for another request. If the server stops waiting, or the body has chunks, the
 * answer ends the connection. A body that takes longer than `maxMs` ends the connection without an answer.
 */
export function answerAfterBody(
  { body, headers }: Request,
  response: Response,
  maxMs: number,
  { signal: draining }: Pick<AbortController, 'signal'>,
  { stallMs, hiddenBodyMs } = HTTP_DEADLINES,
) {
  const { promise, resolve } = Promise.withResolvers<Response>()
  const endConnection = () => {
    response.headers.set('connection', 'close')
    resolve(response)
  }
  // Each answer in a turn of its own. The runtime ends the connection of such an answer within the call, and that runs the next
  // answer inside of it: some 2300 at once would exceed the stack.
  const endSoon = () => void nextTurn().then(endConnection)
  const stall = setTimeout(endConnection, body === null ? hiddenBodyMs : stallMs)
  const limit = setTimeout(() => resolve(endUnanswered()), maxMs)
  const discard = async (parts: ReadableStream<Uint8Array>) => {
    for await (const _ of parts) stall.refresh()
    // If the bytes behind the last chunk are malformed, the runtime answers 400 itself. As in `readChunks`, it does so before the
    // next turn if they have come, and not at all once the connection has ended.
    if (headers.has('transfer-encoding')) endSoon()
    else resolve(response)
  }
  draining.addEventListener('abort', endSoon)
  if (draining.aborted) endSoon()
  if (body !== null) discard(body).catch(() => resolve(endUnanswered()))
  return promise.finally(() => {
    clearTimeout(stall)
    clearTimeout(limit)
    draining.removeEventListener('abort', endSoon)
  })
}
