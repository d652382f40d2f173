import { assignFields, type PlantRow } from '../domain/plant.ts'
import { PAGE_TEXT_LENGTH, type PlantPage, type Store, type StoredPlant, textLength } from '../domain/store.ts'

/** A row of the table `plants`. */
export type StoredPlantRow = PlantRow & { readonly id: bigint }

/** The methods of a store for plants. */
export type PlantMethods = Pick<Store, 'createPlant' | 'listPlants' | 'deletePlant' | 'plantsVersion' | 'hasOnlyGrown'>

/** The page of at most `limit` plants that the rows begin with. A row behind the page tells that it is not the last. */
export function takePage(rows: Iterable<StoredPlantRow>, limit: number): PlantPage {
  const plants: StoredPlant[] = []
  let length = 0
  for (const row of rows) {
    if (plants.length === limit || length >= PAGE_TEXT_LENGTH) return { plants, isLast: false }
    const plant = assignFields({ id: row.id }, row)
    plants.push(plant)
    length += textLength(plant)
  }
  return { plants, isLast: true }
}

/** The page after the largest id. */
export const EMPTY_PAGE: PlantPage = { plants: [], isLast: true }
