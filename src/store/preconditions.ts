// Tested in test/store/contract/plants.ts.
import { isOptional, PLANT_FIELDS, type Plant, type PlantValues, valuesOf } from '../domain/plant.ts'
import type { PlantCondition } from '../domain/store.ts'
import { AppError, kindOf } from '../error.ts'

/** How often a write with a condition reads a plant that others write at the same time. */
const CONDITION_ATTEMPTS_MAX = 10

/** Matches no plant: the required values are missing. */
export const NO_PLANT = valuesOf(Object.fromEntries(PLANT_FIELDS.filter(isOptional).map((field) => [field, ''])))

/** What a write has to find: a plant or none, a plant, none, or a plant with exactly these values. */
export type Expected = 'any' | 'some' | 'none' | PlantValues
export const mayMake = (expected: Expected): boolean => expected === 'any' || expected === 'none'

/**
 * Writes a plant if the stored one fulfils a condition. If that is a function, this reads the plant, calls the function, and
 * has `write` expect the same plant. If another request has changed the plant by then, `write` rejects with
 * `precondition_failed`, or as a delete with `plant_not_found`, and this begins again. If the function returns false, this has
 * `write` expect `NO_PLANT`, so that the refusal comes from the queue: a store that cannot write says so first.
 */
export async function writeIf<T>(
  condition: PlantCondition | undefined,
  read: () => Promise<Plant>,
  write: (expected: Expected) => Promise<T>,
): Promise<T> {
  for (let attempt = 0; attempt < CONDITION_ATTEMPTS_MAX; attempt++) {
    let stored: Plant | undefined
    let expected: Expected = 'any'
    if (typeof condition === 'function') {
      stored = await read().catch((error) => {
        if (kindOf(error) !== 'plant_not_found') throw error
        return undefined
      })
      expected = stored === undefined ? 'none' : valuesOf(stored)
      if (!condition(stored)) expected = NO_PLANT
    } else if (condition !== undefined) expected = condition
    try {
      return await write(expected)
    } catch (error) {
      const isMissing = kindOf(error) === 'plant_not_found'
      if (!(isMissing ? stored !== undefined : kindOf(error) === 'precondition_failed')) throw error
      if (expected === NO_PLANT || typeof condition === 'string') throw new AppError('precondition_failed')
      // Another request has written the plant meanwhile.
    }
  }
  throw new AppError('store_busy', { cause: 'other requests replace the plant again and again' })
}

/** As `writeIf` for a delete. `deleteSame` deletes a plant only while it has the values, else rejects with `plant_not_found`. */
export function deleteIf(
  condition: PlantCondition | undefined,
  read: () => Promise<Plant>,
  deleteSame: (expected: 'any' | PlantValues) => Promise<void>,
): Promise<void> {
  if (condition === undefined || condition === 'some') return deleteSame('any')
  const holds = condition === 'none' ? (stored: Plant | undefined) => stored === undefined : condition
  // A plant that is not there cannot be deleted.
  return writeIf(holds, read, (expected) => deleteSame(typeof expected === 'string' ? NO_PLANT : expected))
}
