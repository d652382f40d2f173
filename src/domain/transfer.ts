import type { NewPlant } from './plant.ts'

/** A plant with the name of the user whom it belongs to: a line of an export. */
export interface OwnedPlant extends NewPlant {
  readonly user: string
}

/** What is done with a plant whose user has that id already: nothing is imported, it stays as it was, or it is replaced. */
export const CONFLICT_RULES = ['fail', 'skip', 'replace'] as const
export type ConflictRule = (typeof CONFLICT_RULES)[number]

/** What became of plants that were imported. */
export interface ImportCounts {
  /** Users that were not there before. */
  readonly users: number
  readonly created: number
  readonly skipped: number
  readonly replaced: number
}

/** The same of one call, and how long other writes had to wait for it. */
export interface Imported extends ImportCounts {
  readonly heldMs: number
}

/** Plants as they were at one moment, in batches by user's name and id, and how many there are in all. */
export interface Export {
  readonly plants: number
  readonly batches: AsyncIterable<readonly OwnedPlant[]>
}

/**
 * Everything that is done with plants in bulk, beside servers that go on meanwhile. Failures are those of `Store`, which
 * says what a write means when it resolves.
 */
export interface Transfer {
  /** All plants, or those of a user, at one moment. Rejects with `user_not_found`. The moment is held until `close`. */
  exportPlants(userName?: string): Promise<Export>
  /** Of some plants, which their users have by their ids already: their places, in ascending order. */
  findTaken(plants: readonly OwnedPlant[]): Promise<readonly number[]>
  /**
   * Stores plants, all of them or none, and users that are new. With `fail` it rejects with `plant_exists` where a user has
   * an id. While it does, others wait; how many plants may be sent at once, so that they do not wait for long, is for the
   * caller to find out.
   */
  importPlants(plants: readonly OwnedPlant[], rule: ConflictRule): Promise<Imported>
  /** From now on what is imported is stored by `commit`, all of it or none. Until then all other writes wait. */
  begin(): Promise<void>
  commit(): Promise<void>
  /** Ends it. What was begun and not committed is not stored. */
  close(): Promise<void>
}
