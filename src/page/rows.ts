// Tested in test/http/page/page-lists.test.ts.
import type { PlantTexts } from '../formats/plant-file.ts'

export type Plant = PlantTexts

/** The fields of a plant in the order of columns and inputs. The server writes them into the page, optional ones with a `?`. */
export const FIELDS = (document.querySelector<HTMLMetaElement>('meta[name=fields]')?.content ?? '')
  .split(' ')
  .map((field) => ({ name: field.replace('?', ''), isOptional: field.endsWith('?') }))

export const FIELD_NAMES = FIELDS.map(({ name }) => name)

export const titleOf = (field: string): string => field.charAt(0).toUpperCase() + field.slice(1)

/** What the server has said of plants by their ids: `undefined` of one that is gone. */
export type Said = ReadonlyMap<string, Plant | undefined>

/** Plants by their ids, and all of them that have ids behind `after` and up to `end`. Without a bound these are empty. */
export type Rows = Readonly<{ plants: readonly Plant[]; after: string; end: string }>

/** A page of the list with its number, read when there were so many changes. */
export type Listing = Rows & Readonly<{ page: number; changes: number }>

/** What a search has found so far: among so many plants, if they have not changed since, on so many pages. It runs with a job. */
export type Search = Rows &
  Readonly<{ filter: string; searched: number | undefined; pages: number; job: object | undefined }>

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
