import { setImmediate as nextTurn } from 'node:timers/promises'
import { plantJson, toPlant } from '../../domain/plant.ts'
import { PAGE_TEXT_LENGTH, type Page, type Store, type StoredPlant } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import { answerTagged, entityTagOf } from '../etag.ts'

/** How many plants the server reads from the store at once. They make one chunk of a streamed list. */
export const PAGE_PLANTS = 500

/** What a list shows of each plant besides its fields: its `id`, or nothing. */
export type Include = 'id' | undefined

/** The JSON of plants, without the brackets around them. */
export const renderPlants = (plants: readonly StoredPlant[], include: Include): string =>
  include === undefined
    ? JSON.stringify(plants.map(toPlant)).slice(1, -1)
    : plants.map((plant) => plantJson(plant, plant.id)).join()

/** The most bytes of a capped list's body, in UTF-8. A list of one plant may be larger. */
export const LIST_MAX_BYTES = 8 * 1024 * 1024

/** The most bytes that UTF-8 takes for a UTF-16 code unit. */
const UTF8_BYTES_PER_UNIT_MAX = 3

/** A list with a `limit`: whole, with an `ETag`, and with a `Link` if more plants follow (RFC 8288). */
export interface CappedList {
  /** Bytes if the body is longer than `PAGE_TEXT_LENGTH`. Such a body is sent once, and not cached. */
  readonly body: string | Uint8Array<ArrayBuffer>
  readonly bodyBytes: number
  readonly etag: string
  /** Empty if no plants follow. */
  readonly link: string
  /** The id of the last plant in the list, if more follow. */
  readonly next: bigint | undefined
}

/** The part of a list that a client asks for. */
interface ListPage extends Page {
  readonly include: Include
}

/** Reads a list of at most `limit` plants and `LIST_MAX_BYTES`. */
export async function cappedList(store: Pick<Store, 'listPlants'>, user: UserId, page: ListPage): Promise<CappedList> {
  const { text, long, next } = await render(store, user, page)
  const include = page.include === undefined ? '' : `&include=${page.include}`
  const link = next === undefined ? '' : `<?limit=${page.limit}&after=${next}${include}>; rel="next"`
  // The hash includes the Link: the same plants with and without others behind them are two answers.
  const { body, etag } = long?.end(link) ?? { body: text, etag: entityTagOf(text + link) }
  return { body, bodyBytes: Buffer.byteLength(body), etag, link, next }
}

/** Answers a request with a capped list, or with 304 if the client has the list already. */
export function answerList({ body, bodyBytes, etag, link }: CappedList, request: Request): Response {
  const response = answerTagged(request, etag, body, bodyBytes)
  if (link !== '' && response.ok) response.headers.set('link', link)
  // The response has its own copy. The garbage collector would free this one only after several more lists.
  if (typeof body !== 'string') body.buffer.transfer(0)
  return response
}

/**
 * Renders the JSON of at most `limit` plants and `LIST_MAX_BYTES`, as `text`, or as `long` beyond `PAGE_TEXT_LENGTH`. `next`
 * is the id of the last plant if more follow. Each page takes a turn of the event loop.
 */
async function render({ listPlants }: Pick<Store, 'listPlants'>, user: UserId, { after, limit, include }: ListPage) {
  if (limit === 0) return { text: '[]' }
  let long: ReturnType<typeof startLongBody> | undefined
  let text = ''
  let last = after
  let roomBytes = LIST_MAX_BYTES - '[]'.length
  for (let rest = limit; ; ) {
    const { plants, isLast } = await listPlants(user, { after: last, limit: Math.min(rest, PAGE_PLANTS) })
    const isFirst = rest === limit
    const { shown, json } = renderFitting(plants, include, roomBytes, isFirst)
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

/** Renders as many of these plants as fit into `roomBytes`, and at least one if `isFirst`. */
function renderFitting(plants: readonly StoredPlant[], include: Include, roomBytes: number, isFirst: boolean) {
  const json = renderPlants(plants, include)
  const fits = json.length * UTF8_BYTES_PER_UNIT_MAX <= roomBytes || Buffer.byteLength(json) <= roomBytes
  if (fits) return { shown: plants, json }
  let count = 0
  let bytes = 0
  for (const plant of plants) {
    bytes += Buffer.byteLength(renderPlants([plant], include)) + (count > 0 ? ','.length : 0)
    if (bytes > roomBytes && !(isFirst && count === 0)) break
    count++
  }
  const shown = plants.slice(0, count)
  return { shown, json: renderPlants(shown, include) }
}

/**
 * Collects the JSON of a long array, and its hash, as UTF-8 in one buffer. A buffer can be freed at once: strings of 8 MiB
 * would wait for the garbage collector until they take 100 MiB.
 */
function startLongBody() {
  const encoder = new TextEncoder()
  const hash = new Bun.SHA256()
  let buffer = new Uint8Array(0)
  let length = 0

  const write = (text: string) => {
    const end = length + Buffer.byteLength(text)
    const capacity = Math.max(end, Math.min(2 * end, LIST_MAX_BYTES))
    if (end > buffer.length) buffer = new Uint8Array(buffer.buffer.transfer(capacity))
    encoder.encodeInto(text, buffer.subarray(length))
    hash.update(buffer.subarray(length, end))
    length = end
  }

  return {
    /** Adds the JSON of plants without brackets. The JSON of no plants adds nothing. */
    append(plants: string) {
      if (plants === '') return
      write(length === 0 ? '[' : ',')
      write(plants)
    },
    /** Ends the array. Returns it, and the entity tag of it and of `link`. */
    end(link: string) {
      write(']')
      return { body: buffer.subarray(0, length), etag: `"${hash.update(link).digest('base64url')}"` }
    },
  }
}
