// Tested in test/store/sqlite/contract.test.ts.
import type { Database } from 'bun:sqlite'
import type { UserId } from '../../../domain/token.ts'
import type { Program } from '../../../engine/sqlite/program.ts'
import { PLANT_FORMAT } from '../format.ts'
import { PLANT_CHANGES, plantWrites } from './plants.ts'
import { openQuota, type PlantQuota } from './quota.ts'
import { TOKEN_CHANGES, tokenWrites } from './tokens.ts'
import { USER_CHANGES, userWrites } from './users.ts'

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

/**
 * What each write changes for readers: the user's lists from a plant on, or all of that user, what is known of tokens, everything
 * or nothing. A write that changes lists begins with the user and the plant's id.
 */
const CHANGES = {
  ...PLANT_CHANGES,
  ...TOKEN_CHANGES,
  ...USER_CHANGES,
  rewriteApplicationId: 'nothing',
} as const satisfies {
  readonly [Name in WriteName]:
    | ('tokens' | 'everything' | 'nothing')
    | (Parameters<Writes[Name]> extends readonly [UserId, idText: string, ...unknown[]]
        ? 'lists from id' | 'lists'
        : never)
}

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
    return { owner: Number(user), lowestId: changed === 'lists' ? undefined : BigInt(`${id}`) }
  },
  isSmall: (call) =>
    (call[0] === 'createPlant' || call[0] === 'putPlant') && call.join('').length <= SMALL_PLANT_LENGTH,
}
