import type { Database } from 'bun:sqlite'
import { APPLICATION_ID } from '../../../engine/sqlite/migrate.ts'
import { plantWrites } from './plants.ts'
import type { PlantQuota } from './quota.ts'
import { tokenWrites } from './tokens.ts'
import { userWrites } from './users.ts'

/**
 * All writes, by name. Each runs inside a transaction that it may share with others. A write that throws an `AppError` has
 * changed nothing. The arguments survive JSON, which takes them to the thread that writes.
 */
export const createWrites = (writer: Database, quota?: PlantQuota) => ({
  ...plantWrites(writer, quota),
  ...tokenWrites(writer),
  ...userWrites(writer, quota),
  /** Shows whether writing is possible. */
  rewriteApplicationId: () => void writer.run(`pragma application_id = ${APPLICATION_ID}`),
})

export type Writes = ReturnType<typeof createWrites>
type WriteName = keyof Writes

/** What a write changes for readers. Of a write that changes `plants`, the first arguments are the user and the id of the plant. */
export const CHANGES = {
  createPlant: 'plants',
  // The call does not name a user by id.
  createFirstPlant: 'everything',
  putPlant: 'plants',
  putFirstPlant: 'everything',
  deletePlant: 'plants',
  deletePlantsOrUser: 'everything',
  createTokens: 'tokens',
  revokeTokens: 'tokens',
  rotateToken: 'tokens',
  setUserBlock: 'tokens',
  blockForGood: 'tokens',
  touchTokens: 'nothing',
  rewriteApplicationId: 'nothing',
} as const satisfies Record<WriteName, 'plants' | 'tokens' | 'everything' | 'nothing'>

/** A write by its name and arguments. */
export type Call = { readonly [Name in WriteName]: readonly [Name, ...Parameters<Writes[Name]>] }[WriteName]
