import { PAGE_TEXT_LENGTH, type Store, type StoredPlant, textLength } from '../domain/store.ts'

/** A plant as every database tells it. */
export interface PlantRow {
  readonly id: bigint
  readonly name: string
  readonly tag: string | null
}

/** The part of a store that is about plants. */
export type PlantMethods = Pick<Store, 'createPlant' | 'listPlants' | 'deletePlant' | 'plantsVersion' | 'hasOnlyGrown'>

/** The plants of rows, up to where their text makes a page. */
export function takePage(rows: Iterable<PlantRow>): readonly StoredPlant[] {
  const page: StoredPlant[] = []
  let length = 0
  for (const { id, name, tag } of rows) {
    const plant = tag === null ? { id, name } : { id, name, tag }
    page.push(plant)
    length += textLength(plant)
    if (length >= PAGE_TEXT_LENGTH) break
  }
  return page
}
