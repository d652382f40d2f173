// Tested in test/store/contract/plants.ts.
import { PLANT_FIELDS, type Plant, type StoredPlant } from '../domain/plant.ts'
import { PAGE_TEXT_LENGTH, type PlantPage } from '../domain/store.ts'

/** A row, as the drivers return it: the values of its columns by their names. */
export type Row = Readonly<Record<string, bigint | string | null>>

/** What a row says: integers become numbers, and null becomes `undefined`. The statement names the columns as the type does. */
export function fromRow<T extends object>(row: Row): T {
  const object: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(row)) {
    object[name] = typeof value === 'bigint' ? Number(value) : (value ?? undefined)
  }
  return object as unknown as T
}

/** The page of at most `limit` plants that the rows begin with. A row behind the page tells that it is not the last. */
export function takePage<Row extends Pick<StoredPlant, 'id'>>(
  rows: Iterable<Row>,
  limit: number,
  toPlant: (row: Row) => Plant,
): PlantPage {
  const plants: StoredPlant[] = []
  let length = 0
  for (const row of rows) {
    if (plants.length === limit || length >= PAGE_TEXT_LENGTH) return { plants, isLast: false }
    const plant = toPlant(row)
    plants.push({ id: row.id, plant })
    for (const field of PLANT_FIELDS) length += plant[field]?.length ?? 0
  }
  return { plants, isLast: true }
}
