import type { Store } from '../../../src/domain/store.ts'
import type { UserId } from '../../../src/domain/token.ts'
import { PAGE_PLANTS } from '../../../src/http/lists/render-list.ts'
import { createPlants } from '../../support/many-plants.ts'
import { type Answer, userIdOf } from './service.ts'

/** Two pages of the store and one plant more. */
export const MANY = 2 * PAGE_PLANTS + 1
/** The error of a page that fails. */
export const FAULT = new Error('a page that cannot be read')

/** Creates the plant with this even id, counted from 0. Returns its name. */
export async function createEven(store: Store, user: UserId, index: number): Promise<string> {
  const plant = evenPlant(index)
  await store.createPlant(user, plant)
  return plant.name
}

const evenPlant = (index: number) => ({ id: BigInt(2 * index), name: String(2 * index) })

/** Creates plants with even ids for user `me`, on three pages. Returns their names in the order of their ids. */
export async function createMany(store: Store): Promise<string[]> {
  const plants = Array.from({ length: MANY }, (_, index) => evenPlant(index))
  await createPlants(store, await userIdOf(store, 'me'), plants)
  return plants.map(({ name }) => name)
}

/** Counts the pages that a service reads. The page of this number, counted from 1, fails once `ready` has resolved. */
export function countPages({ failAt = 0, ready = async () => {} } = {}) {
  let pages = 0
  const overrideStore = (store: Store): Partial<Store> => ({
    async listPlants(...asked) {
      pages++
      if (pages !== failAt) return store.listPlants(...asked)
      await ready()
      throw FAULT
    },
  })
  return { pages: () => pages, overrideStore }
}

/** The names of the plants of a list. */
export const namesIn = ({ body }: Pick<Answer, 'body'>): string[] => body.map((plant: { name: string }) => plant.name)

/** The query string that `Link` leads to, if it leads on. */
export const nextOf = ({ headers }: Pick<Answer, 'headers'>): string | undefined =>
  /^<([^>]*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1]
