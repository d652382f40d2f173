import { setImmediate as nextTurn } from 'node:timers/promises'
import { plantJson, type StoredPlant } from '../../domain/plant.ts'
import { EMPTY_PAGE, type Page, type Store } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'

/** How many plants the server reads from the store at once. They make one part of a list. */
export const PAGE_PLANTS = 500

/** What a list shows of each plant besides its fields: its `id`, or nothing. */
export type Include = 'id' | undefined

/** The part of a list that a client asks for. Without a cap the limit is infinite. */
export interface ListPage extends Page {
  readonly include: Include
}

/** The most bytes that UTF-8 takes for a UTF-16 code unit. */
const UTF8_BYTES_PER_UNIT_MAX = 3

/** A part of the JSON of a list. With the last part, `next` is the id of the last plant if more follow. */
export interface ListPart {
  readonly text: string
  readonly isLast: boolean
  readonly next: bigint | undefined
}

/**
 * Returns a function that reads and renders the next part of a list. The list ends before the plant that would make it longer than
 * `maxBytes`, but holds at least one.
 */
export function renderList(
  { listPlants }: Pick<Store, 'listPlants'>,
  user: UserId,
  { after, limit, include }: ListPage,
  maxBytes: number,
): () => Promise<ListPart> {
  let last = after
  let rest = limit
  let roomBytes = maxBytes - '[]'.length
  let isFirst = true
  return async () => {
    // Other requests get their turn, however fast this client reads.
    if (!isFirst) await nextTurn()
    const page = { after: last, limit: Math.min(rest, PAGE_PLANTS) }
    const { plants, isLast: isWhole } = rest === 0 ? EMPTY_PAGE : await listPlants(user, page)
    const { shown, json } = renderFitting(plants, include, roomBytes, isFirst)
    const separator = json === '' ? '' : ','
    const opening = isFirst ? '[' : separator
    const hasMore = !isWhole || shown.length < plants.length
    last = shown.at(-1)?.id ?? last
    rest -= plants.length
    roomBytes -= Buffer.byteLength(json) + ','.length
    isFirst = false
    const isLast = isWhole || shown.length < plants.length || rest === 0
    return { text: opening + json + (isLast ? ']' : ''), isLast, next: hasMore ? last : undefined }
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

/** The JSON of plants, without the brackets around them. */
const renderPlants = (plants: readonly StoredPlant[], include: Include): string =>
  include === undefined
    ? JSON.stringify(plants.map(({ plant }) => plant)).slice(1, -1)
    : plants.map(({ id, plant }) => plantJson(plant, id)).join()
