import type { NewPlant } from './plant.ts'

/** A plant with the name of its user: a line of an export. */
export interface OwnedPlant extends NewPlant {
  readonly user: string
}

/** If a user already has the id of a plant, an import imports nothing, skips the plant, or replaces the stored one. */
export const CONFLICT_RULES = ['fail', 'skip', 'replace'] as const
export type ConflictRule = (typeof CONFLICT_RULES)[number]

/** All plants, or the plants of a user, as they were when the export began. `dispose` ends the export. */
export interface PlantExport extends Disposable {
  /** The number of plants. */
  readonly plants: number
  /** The plants by user name and id. */
  readonly batches: AsyncIterable<readonly OwnedPlant[]>
}

/** What an import did. */
export interface ImportCounts {
  /** New users. */
  readonly users: number
  readonly created: number
  readonly skipped: number
  readonly replaced: number
}

/** What one call of `write` did, and for how long other writes had to wait for it. */
export interface ImportedBatch extends ImportCounts {
  readonly heldMs: number
}

/** Imports plants while servers use the database. Rejects as the writes of a `Store` do. `dispose` rolls back the rest. */
export interface PlantImport extends Disposable {
  /** Returns those of the plants whose ids their users already have. */
  findExisting<P extends OwnedPlant>(plants: readonly P[]): Promise<readonly P[]>
  /**
   * Writes all of these plants, and their users if they are new, or none of them. With `fail` it rejects with `plant_exists` if
   * a user already has an id. Other writes wait meanwhile, so the caller chooses how many plants it passes.
   */
  write(plants: readonly OwnedPlant[], rule: ConflictRule): Promise<ImportedBatch>
  /** Makes all later writes one transaction. All other writes wait until `commit`. */
  begin(): Promise<void>
  commit(): Promise<void>
}
