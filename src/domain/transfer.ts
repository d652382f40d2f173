import type { NewPlant } from './plant.ts'

/** A plant with the name of its user: a line of an export. */
export interface OwnedPlant extends NewPlant {
  readonly user: string
}

/** If a user already has the id of a plant, an import imports nothing, skips the plant, or replaces the stored one. */
export const CONFLICT_RULES = ['fail', 'skip', 'replace'] as const
export type ConflictRule = (typeof CONFLICT_RULES)[number]
