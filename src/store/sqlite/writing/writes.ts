// Tested in test/store/sqlite/contract.test.ts.
import type { Database } from 'bun:sqlite'
import type { Program } from '../../../engine/sqlite/program.ts'
import { PLANT_FORMAT } from '../format.ts'
import { plantWrites } from './plants.ts'
import { openQuota, type PlantQuota } from './quota.ts'
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
  rewriteApplicationId: () => void writer.run(`pragma application_id = ${PLANT_FORMAT.applicationId}`),
})

export type Writes = ReturnType<typeof createWrites>
export type WriteName = keyof Writes

/** What a write changes for readers. Writes of `plants` begin with user and id. */
const CHANGES = {
  createPlant: 'plants',
  putPlant: 'plants',
  deletePlant: 'plants',
  deletePlantsOrUser: 'everything',
  createTokens: 'tokens',
  revokeTokens: 'tokens',
  rotateToken: 'tokens',
  ensureUser: 'tokens',
  setUserBlock: 'tokens',
  blockForGood: 'tokens',
  touchTokens: 'nothing',
  rewriteApplicationId: 'nothing',
} as const satisfies Record<WriteName, 'plants' | 'tokens' | 'everything' | 'nothing'>

/** A write by its name and arguments. */
export type Call = { readonly [Name in WriteName]: readonly [Name, ...Parameters<Writes[Name]>] }[WriteName]

/** A lone create or put of a plant up to this length is a small write. */
const SMALL_PLANT_LENGTH = 1024

/** What the engine runs for us: all writes, with the quota of plants as their setting. */
export const PLANT_STORE: Program<{ readonly quotaPlants?: number | undefined }> = {
  open(writer, { quotaPlants }) {
    const quota = quotaPlants === undefined ? undefined : openQuota(writer, quotaPlants)
    return { writes: createWrites(writer, quota), forget: () => quota?.forget() }
  },
  invalidates([name, user, id]) {
    const changed = CHANGES[name as WriteName]
    if (changed === 'tokens') return 'shared'
    if (changed === 'nothing') return undefined
    if (changed === 'everything') return 'everything'
    // A put changes no list that ends before its plant, made or replaced. A delete may make such a list the last.
    return { owner: Number(user), lowestId: name === 'deletePlant' ? undefined : BigInt(`${id}`) }
  },
  isSmall: (call) =>
    (call[0] === 'createPlant' || call[0] === 'putPlant') && call.join('').length <= SMALL_PLANT_LENGTH,
}
