import { plantJson, toPlant } from '../../domain/plant.ts'
import type { StoredPlant } from '../../domain/store.ts'

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

/** The body of a long list while the server renders it. */
export type LongBody = ReturnType<typeof startLongBody>

/**
 * Collects the JSON of a long array, and its hash, as UTF-8 in one buffer. A buffer can be freed at once: strings of 8 MiB
 * would wait for the garbage collector until they take 100 MiB.
 */
export function startLongBody() {
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
