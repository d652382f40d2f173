import { nextTurn } from '../../domain/next-turn.ts'
import { toPlant } from '../../domain/plant.ts'
import { PAGE_TEXT_LENGTH, type Store, type StoredPlant } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import { JSON_TYPE, json, jsonHeaders } from '../json.ts'
import { LIST_MAX_BYTES, type LongBody, startLongBody } from './long-body.ts'

/** Plants that are read from the store at once, and that make one chunk of a streamed list. */
export const PAGE_PLANTS = 500

type ListPlants = Store['listPlants']

/** UTF-8 takes no more bytes for a UTF-16 code unit. */
const UTF8_BYTES_PER_UNIT_MAX = 3

/** A list that ends at its `limit`: whole, with an `ETag`, and with a `Link` where more follow (RFC 8288). */
export interface CappedList {
  /** Bytes where it is longer than `PAGE_TEXT_LENGTH`: those are answered once. */
  readonly body: string | Uint8Array<ArrayBuffer>
  readonly etag: string
  readonly link: string | undefined
  /** The id of its last plant, if more follow. */
  readonly next: bigint | undefined
}

/** Reads a list of at most `limit` plants and `LIST_MAX_BYTES`. */
export async function cappedList(
  listPlants: ListPlants,
  user: UserId,
  { limit, after }: { readonly limit: number; readonly after: bigint | undefined },
): Promise<CappedList> {
  const { text, long, next } = await render(listPlants, user, after, limit)
  const link = next === undefined ? undefined : `<?limit=${limit}&after=${next}>; rel="next"`
  // The ETag speaks for the Link too: the same plants with and without more behind them are two answers.
  const { body, hash } = long?.end(link) ?? { body: text, hash: Bun.SHA256.hash(text + (link ?? ''), 'base64url') }
  return { body, etag: `"${hash}"`, link, next }
}

/** The answer that a capped list is to this request. */
export function answerList({ body, etag, link }: CappedList, request: Request): Response {
  const ifNoneMatch = request.headers.get('if-none-match')
  if (ifNoneMatch !== null && matches(ifNoneMatch, etag)) return new Response(null, { status: 304, headers: { etag } })
  const isHead = request.method === 'HEAD'
  const response = new Response(isHead ? null : body, { headers: CAPPED })
  response.headers.set('etag', etag)
  if (link !== undefined) response.headers.set('link', link)
  if (isHead) response.headers.set('content-length', String(bytesOf(body)))
  // The response has a copy. The garbage collector would free this one only after several more lists.
  if (typeof body !== 'string') body.buffer.transfer(0)
  return response
}

const bytesOf = (body: string | Uint8Array<ArrayBuffer>): number =>
  typeof body === 'string' ? Buffer.byteLength(body) : body.length

const CAPPED = jsonHeaders('private, no-cache')

const streamEnds = new WeakMap<Response, Promise<void>>()

/** Resolves at the end of a streamed answer, also if the client goes away; `undefined` for any other answer. */
export const streamEnd = (response: Response): Promise<void> | undefined => streamEnds.get(response)

/**
 * The whole list, a page at a time and only as fast as the client reads, so that memory does not grow with it. Calls
 * `onMore` before each page but the first, and `onCut` with an error that ends the list before its time.
 */
export async function streamedList(
  listPlants: ListPlants,
  user: UserId,
  after: bigint | undefined,
  { onMore, onCut }: { readonly onMore: () => void; readonly onCut: (error: unknown) => void },
): Promise<Response> {
  const pages = readPages(listPlants, user, after)
  // The first page is read before the status is sent: a store that fails at once is answered with an error.
  let page = await pages.next()
  let opening = '['
  const ended = Promise.withResolvers<void>()
  const stream = new ReadableStream<string>(
    {
      async pull(controller) {
        try {
          if (page.done) {
            controller.enqueue(`${opening}]`)
            controller.close()
            ended.resolve()
            return
          }
          controller.enqueue(opening + renderPlants(page.value))
          opening = ','
          page = await pages.next()
          if (page.done) opening = ''
          else onMore()
        } catch (error) {
          onCut(error)
          ended.resolve()
          // Without the last chunk, so that no client takes the half for the whole. The runtime would print the error.
          controller.error()
        }
      },
      async cancel() {
        ended.resolve()
        await pages.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
  const response = json(stream)
  streamEnds.set(response, ended.promise)
  return response
}

/** What `HEAD` answers for a list without a limit: the head of `streamedList`. The stream is never read. */
export const streamedListHead = (): Response =>
  new Response(new ReadableStream({}, { highWaterMark: 0 }), { headers: { 'content-type': JSON_TYPE } })

/**
 * The JSON of at most `limit` plants and `LIST_MAX_BYTES`, and the id after which more follow, if any do. It is `text`, or
 * `long` if it is longer than `PAGE_TEXT_LENGTH`. Each page takes a turn of the event loop.
 */
async function render(listPlants: ListPlants, user: UserId, after: bigint | undefined, limit: number) {
  if (limit === 0) return { text: '[]' }
  let long: LongBody | undefined
  let text = ''
  let last = after
  let roomBytes = LIST_MAX_BYTES - '[]'.length
  for (let rest = limit; ; ) {
    const { plants, isLast } = await readPage(listPlants, user, last, rest)
    const isFirst = rest === limit
    const { shown, json } = renderFitting(plants, roomBytes, isFirst)
    text += text === '' || json === '' ? json : `,${json}`
    if (long !== undefined || text.length > PAGE_TEXT_LENGTH) {
      long ??= startLongBody()
      long.append(text)
      text = ''
    }
    last = shown.at(-1)?.id ?? last
    rest -= plants.length
    const isCut = shown.length < plants.length
    if (isLast || isCut || rest === 0) return { text: `[${text}]`, long, next: isLast && !isCut ? undefined : last }
    roomBytes -= Buffer.byteLength(json) + ','.length
    // Other requests get their turn, however fast this client reads.
    await nextTurn()
  }
}

/** The first of these plants whose JSON has no more than so many bytes, and that JSON. At least one if `isFirst`. */
function renderFitting(plants: readonly StoredPlant[], roomBytes: number, isFirst: boolean) {
  const json = renderPlants(plants)
  const fits = json.length * UTF8_BYTES_PER_UNIT_MAX <= roomBytes || Buffer.byteLength(json) <= roomBytes
  if (fits) return { shown: plants, json }
  let count = 0
  let bytes = 0
  for (const plant of plants) {
    bytes += Buffer.byteLength(renderPlants([plant])) + (count > 0 ? ','.length : 0)
    if (bytes > roomBytes && !(isFirst && count === 0)) break
    count++
  }
  const shown = plants.slice(0, count)
  return { shown, json: renderPlants(shown) }
}

/** Pages of the user's plants, none of them empty. */
async function* readPages(
  listPlants: ListPlants,
  user: UserId,
  after: bigint | undefined,
): AsyncGenerator<readonly StoredPlant[], undefined> {
  for (let last = after; ; ) {
    const { plants, isLast } = await readPage(listPlants, user, last, Number.POSITIVE_INFINITY)
    if (plants.length > 0) yield plants
    if (isLast) return
    last = plants.at(-1)?.id
    await nextTurn()
  }
}

/** The next plants after one, at most `rest`. */
const readPage = (listPlants: ListPlants, user: UserId, after: bigint | undefined, rest: number) =>
  listPlants(user, { after, limit: Math.min(rest, PAGE_PLANTS) })

/** The JSON of plants, without the brackets around them. */
const renderPlants = (plants: readonly StoredPlant[]): string => JSON.stringify(plants.map(toPlant)).slice(1, -1)

/** `If-None-Match` compares weakly (RFC 9110 §13.1.2): `W/` does not count, `*` names whatever there is. */
function matches(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch.trim() === '*') return true
  for (const [, tag] of ifNoneMatch.matchAll(ENTITY_TAGS)) if (tag === etag) return true
  return false
}

/** The tags of a list, without their `W/`. What is none names nothing. */
const ENTITY_TAGS = /(?<=^|,)[ \t]*(?:W\/)?("[^"]*")[ \t]*(?=,|$)/g
