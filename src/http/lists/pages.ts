import { toPlant } from '../../domain/plant.ts'
import type { Store, StoredPlant } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'

/** How many plants the server reads from the store at once. They make one chunk of a streamed list. */
export const PAGE_PLANTS = 500

export type ListPlants = Store['listPlants']

/** Reads the next plants after an id, at most `rest` of them. */
export const readPage = (listPlants: ListPlants, user: UserId, after: bigint | undefined, rest: number) =>
  listPlants(user, { after, limit: Math.min(rest, PAGE_PLANTS) })

/** The JSON of plants, without the brackets around them. */
export const renderPlants = (plants: readonly StoredPlant[]): string => JSON.stringify(plants.map(toPlant)).slice(1, -1)
