// Tested in test/http/socket/page-lists.test.ts.
import type { Plant } from './fields.ts'

/** What the server has said of plants by their ids: `undefined` of one that is gone. */
export type Said = ReadonlyMap<string, Plant | undefined>

/** Plants by their ids, and all of them that have ids behind `after` and up to `end`. Without a bound these are empty. */
export interface Rows {
  readonly plants: readonly Plant[]
  readonly after: string
  readonly end: string
}

/** A page of the list, as the server has it, with its number and its `ETag`. */
export interface Listing extends Rows {
  readonly page: number
  readonly etag: string
  /** How many changes there were when it was read. */
  readonly changes: number
}

/** What a search over all pages has found so far. */
export interface Search extends Rows {
  readonly filter: string
  /** How many plants were searched, on how many pages. Not known once plants have changed. */
  readonly searched: number | undefined
  readonly pages: number
  readonly isRunning: boolean
}

/** Whether rows have the plant with this id, if there is one. */
export const isIn = (id: string, { after, end }: Pick<Rows, 'after' | 'end'>): boolean =>
  (after === '' || BigInt(id) > BigInt(after)) && (end === '' || BigInt(id) <= BigInt(end))

/** Whether one of the texts of a plant contains a text, in any letter case. */
export const matches = (plant: Plant, filter: string): boolean =>
  Object.values(plant).some((text) => text.toLowerCase().includes(filter.toLowerCase()))

const byId = (one: Plant, other: Plant): number => (BigInt(one.id) < BigInt(other.id) ? -1 : 1)

/** Rows with what the server has said meanwhile. `filter` is the text that each plant of them contains. */
export function withSaid<R extends Rows>(rows: R, said: Said, filter = ''): R {
  const within = [...said].filter(([id]) => isIn(id, rows))
  if (within.length === 0) return rows
  const added = within.flatMap(([, plant]) => (plant && matches(plant, filter) ? [plant] : []))
  const plants = [...rows.plants.filter(({ id }) => !said.has(id)), ...added].sort(byId)
  return { ...rows, plants }
}
