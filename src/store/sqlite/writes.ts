import type { Database } from 'bun:sqlite'
import { healthWrites } from './health.ts'
import { plantWrites } from './plants.ts'
import { tokenWrites } from './tokens.ts'
import { userWrites } from './users.ts'

/**
 * Everything that can be written, by name. Each runs inside a transaction that it may share with others; what it
 * refuses, by an `AppError`, it refuses before it changes anything.
 */
export const createWrites = (writer: Database) => ({
  ...plantWrites(writer),
  ...tokenWrites(writer),
  ...userWrites(writer),
  ...healthWrites(writer),
})

export type Writes = ReturnType<typeof createWrites>
export type WriteName = keyof Writes

/** What a write changes that anybody reads; of those that change `plants`, versions.ts knows whose and which. */
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

/** The write that changes the file, and no row of it. */
export const CHANGES_NO_ROW: WriteName = 'rewriteApplicationId'

/** A write that is asked for by its name, with its arguments, as it is sent to the thread that writes. */
export type Call = { readonly [Name in WriteName]: readonly [Name, ...Parameters<Writes[Name]>] }[WriteName]
