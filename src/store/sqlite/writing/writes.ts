import type { Database } from 'bun:sqlite'
import { healthWrites } from '../health.ts'
import { plantWrites } from '../plants.ts'
import { tokenWrites } from '../tokens.ts'
import { userWrites } from '../users.ts'

/**
 * All writes, by name. Each runs inside a transaction that it may share with others. A write that throws an `AppError` has
 * changed nothing.
 */
export const createWrites = (writer: Database) => ({
  ...plantWrites(writer),
  ...tokenWrites(writer),
  ...userWrites(writer),
  ...healthWrites(writer),
})

export type Writes = ReturnType<typeof createWrites>
export type WriteName = keyof Writes

/** What a write changes for readers. Of a write that changes `plants`, the first argument is the user. */
export const CHANGES = {
  createPlant: 'plants',
  deletePlant: 'plants',
  deletePlantsOrUser: 'everything',
  createToken: 'tokens',
  createFirstToken: 'tokens',
  revokeTokens: 'tokens',
  deleteTokensOfUser: 'tokens',
  touchTokens: 'nothing',
  rewriteApplicationId: 'nothing',
} as const satisfies Record<WriteName, 'plants' | 'tokens' | 'everything' | 'nothing'>

/** A write by its name and arguments, as it is sent to the thread that writes. */
export type Call = { readonly [Name in WriteName]: readonly [Name, ...Parameters<Writes[Name]>] }[WriteName]
