// Tested in test/http/list-size.test.ts.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Plant, plantJson, type StoredPlant } from '../../domain/plant.ts'
import { EMPTY_PAGE, PAGE_TEXT_LENGTH, type PlantRange, type Plants } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import type { TaggedBody } from '../answers.ts'

/** How many plants the server reads from the store at once. They make one part of a list. */
export const PAGE_PLANTS = 500

/** The most bytes of a capped list's body, in UTF-8. A list of one plant may be larger. */
export const LIST_MAX_BYTES = 8 * 1024 * 1024

/** What a list shows of each plant besides its fields: its `id`, or nothing. */
export type Include = 'id' | undefined

/** The part of a list that a client asks for. Without a cap the limit is infinite. */
export interface ListRange extends PlantRange {
  readonly include: Include
}

/** A list with a `limit`: whole, with an `ETag`, and with a `Link` if more plants follow. */
export interface CappedList extends TaggedBody {
  /** The id of the last plant if the limit ends the list there and more follow, so that what is behind it does not matter. */
  readonly next: bigint | undefined
}

/**
 * Reads a list of at most `limit` plants and `LIST_MAX_BYTES`. A body longer than `PAGE_TEXT_LENGTH` is bytes. It is sent once,
 * and not cached. A buffer can be freed at once: strings of 8 MiB would wait for the garbage collector until they take 100 MiB.
 */
export async function cappedList(store: Plants, user: UserId, range: ListRange): Promise<CappedList> {
  const nextPart = renderList(store, user, range, LIST_MAX_BYTES)
  const hash = new Bun.SHA256()
  let text = ''
  let long: Bun.ArrayBufferSink | undefined
  let bodyBytes = 0
  let part: ListPart
  do {
    part = await nextPart()
    hash.update(part.text)
    text += part.text
    bodyBytes += part.bytes
    if (long !== undefined || text.length > PAGE_TEXT_LENGTH) {
      long ??= new Bun.ArrayBufferSink()
      long.write(text)
      text = ''
    }
  } while (!part.isLast)
  const { next } = part
  const include = range.include === undefined ? '' : `&include=${range.include}`
  const link = next === undefined ? '' : `<?limit=${range.limit}&after=${next}${include}>; rel="next"`
  // The same plants with and without others behind them are two answers.
  const etag = `"${hash.update(link).digest('base64url')}"`
  // The sink returns a `Uint8Array` only if it is asked to.
  const body = (long?.end() as ArrayBuffer | undefined) ?? text
  return { body, bodyBytes, etag, link, next: part.isCut ? undefined : next }
}

export type ListPart = Awaited<ReturnType<ReturnType<typeof renderList>>>

/**
 * Returns a function that renders the next part of a list, and counts its bytes in UTF-8. The list ends before the plant that
 * would make it longer than `maxBytes`, but holds at least one. In the last part, `next` is the id of the last plant if more
 * follow, and `isCut` tells that the next one would make the list too long.
 */
export function renderList(
  { listPlants }: Plants,
  user: UserId,
  { after, limit, include }: ListRange,
  maxBytes: number,
) {
  let last = after
  let leftPlants = limit
  let leftBytes = maxBytes - '[]'.length
  let isFirst = true
  return async () => {
    // Other requests get their turn, however fast this client reads.
    if (!isFirst) await nextTurn()
    const range = { after: last, limit: Math.min(leftPlants, PAGE_PLANTS) }
    const page = leftPlants === 0 ? EMPTY_PAGE : await listPlants(user, range)
    const { json, bytes, count } = renderFitting(page.plants, include, leftBytes, isFirst)
    last = page.plants[count - 1]?.id ?? last
    leftPlants -= count
    leftBytes -= bytes + ','.length
    const isCut = count < page.plants.length
    const isLast = page.isLast || isCut || leftPlants === 0
    const opening = isFirst ? '[' : json && ','
    const closing = isLast ? ']' : ''
    isFirst = false
    const next = page.isLast && !isCut ? undefined : last
    return { text: opening + json + closing, bytes: opening.length + bytes + closing.length, isLast, isCut, next }
  }
}

/** Renders as many of these plants as fit into `leftBytes`, and at least one if `isFirst`. */
function renderFitting(plants: readonly StoredPlant[], include: Include, leftBytes: number, isFirst: boolean) {
  const json = renderPlants(plants, include)
  const bytes = Buffer.byteLength(json)
  if (bytes <= leftBytes) return { json, bytes, count: plants.length }
  const each = plants.map((plant) => renderPlants([plant], include))
  let usedBytes = -','.length
  const fitting = each.findIndex((one) => {
    usedBytes += ','.length + Buffer.byteLength(one)
    return usedBytes > leftBytes
  })
  const count = Math.max(fitting, isFirst ? 1 : 0)
  const shown = each.slice(0, count).join()
  return { json: shown, bytes: Buffer.byteLength(shown), count }
}

/** The JSON of plants, without the brackets around them. */
function renderPlants(plants: readonly StoredPlant[], include: Include): string {
  if (include !== undefined) return plants.map(({ id, plant }) => plantJson(plant, id)).join()
  const rendered: Plant[] = []
  for (const { plant } of plants) rendered.push(plant)
  return JSON.stringify(rendered).slice(1, -1)
}
