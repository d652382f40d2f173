import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Plant, plantJson, type StoredPlant } from '../../domain/plant.ts'
import { EMPTY_PAGE, type PlantRange, type Store } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'

/** How many plants the server reads from the store at once. They make one part of a list. */
export const PAGE_PLANTS = 500

/** What a list shows of each plant besides its fields: its `id`, or nothing. */
export type Include = 'id' | undefined

/** The part of a list that a client asks for. Without a cap the limit is infinite. */
export interface ListRange extends PlantRange {
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
  { after, limit, include }: ListRange,
  maxBytes: number,
): () => Promise<ListPart> {
  let last = after
  let leftPlants = limit
  let leftBytes = maxBytes - '[]'.length
  let isFirst = true
  return async () => {
    // Other requests get their turn, however fast this client reads.
    if (!isFirst) await nextTurn()
    const range = { after: last, limit: Math.min(leftPlants, PAGE_PLANTS) }
    const page = leftPlants === 0 ? EMPTY_PAGE : await listPlants(user, range)
    const { shown, json } = renderFitting(page.plants, include, leftBytes, isFirst)
    const isFull = shown.length < page.plants.length
    const opening = isFirst ? '[' : json && ','
    last = shown.at(-1)?.id ?? last
    leftPlants -= shown.length
    leftBytes -= Buffer.byteLength(json) + ','.length
    isFirst = false
    const isLast = page.isLast || isFull || leftPlants === 0
    return { text: opening + json + (isLast ? ']' : ''), isLast, next: page.isLast && !isFull ? undefined : last }
  }
}

/** Renders as many of these plants as fit into `leftBytes`, and at least one if `isFirst`. */
function renderFitting(plants: readonly StoredPlant[], include: Include, leftBytes: number, isFirst: boolean) {
  const json = renderPlants(plants, include)
  const fits = json.length * UTF8_BYTES_PER_UNIT_MAX <= leftBytes || Buffer.byteLength(json) <= leftBytes
  if (fits) return { shown: plants, json }
  let count = 0
  let bytes = 0
  for (const plant of plants) {
    bytes += Buffer.byteLength(renderPlants([plant], include)) + (count > 0 ? ','.length : 0)
    if (bytes > leftBytes && !(isFirst && count === 0)) break
    count++
  }
  const shown = plants.slice(0, count)
  return { shown, json: renderPlants(shown, include) }
}

/** The JSON of plants, without the brackets around them. */
function renderPlants(plants: readonly StoredPlant[], include: Include): string {
  if (include !== undefined) return plants.map(({ id, plant }) => plantJson(plant, id)).join()
  const rendered: Plant[] = []
  for (const { plant } of plants) rendered.push(plant)
  return JSON.stringify(rendered).slice(1, -1)
}
