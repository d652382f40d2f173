// Tested in test/store/contract/plants.ts.
import { isOptional, PLANT_FIELDS, type Plant, type PlantValues, type StoredPlant, valuesOf } from '../domain/plant.ts'
import {
  type CreatedTokens,
  type NewToken,
  PAGE_TEXT_LENGTH,
  type PlantCondition,
  type PlantPage,
  type TaskOptions,
} from '../domain/store.ts'
import { type Token, tokenState } from '../domain/token.ts'
import { AppError, kindOf } from '../error.ts'

/** Plants of a deleted user that one transaction deletes, and the pause after it in which others can write. */
export const DELETE_BATCH_PLANTS = 1000
const DELETE_PAUSE_MS = 20
/** How often a write with a condition reads a plant that others write at the same time. */
const CONDITION_ATTEMPTS_MAX = 10

/** No plant has these values, because the required ones are missing. */
export const NO_PLANT = valuesOf(Object.fromEntries(PLANT_FIELDS.filter(isOptional).map((field) => [field, ''])))

/** What a write has to find: a plant or none, a plant, none, or a plant with exactly these values. */
export type Expected = 'any' | 'some' | 'none' | PlantValues
/** Whether a put may make a plant. */
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

/**
 * Deletes the plants of a user, and the user with the last batch. `deleteBatch` returns how many plants it has deleted: fewer
 * than `DELETE_BATCH_PLANTS` if they were the last. Returns how many all were. `total` is their number at the start.
 */
export async function deleteInBatches(
  total: number,
  deleteBatch: () => Promise<number>,
  { onProgress, signal }: TaskOptions,
): Promise<number> {
  let plants = 0
  for (;;) {
    await onProgress?.(plants, total)
    signal?.throwIfAborted()
    const deleted = await deleteBatch()
    plants += deleted
    if (deleted < DELETE_BATCH_PLANTS) return plants
    await Bun.sleep(DELETE_PAUSE_MS)
  }
}

/** The page of at most `limit` plants that the rows begin with. A row behind the page tells that it is not the last. */
export function takePage<Row extends Pick<StoredPlant, 'id'>>(
  rows: Iterable<Row>,
  limit: number,
  toPlant: (row: Row) => Plant,
): PlantPage {
  const plants: StoredPlant[] = []
  let length = 0
  for (const row of rows) {
    if (plants.length === limit || length >= PAGE_TEXT_LENGTH) return { plants, isLast: false }
    const plant = toPlant(row)
    plants.push({ id: row.id, plant })
    for (const field of PLANT_FIELDS) length += plant[field]?.length ?? 0
  }
  return { plants, isLast: true }
}

/** Selects rows of tokens in any database. `prefix` stands before the names of the tables, and `others` are further columns. */
export const selectTokens = (prefix = '', others = ''): string => `
  select tokens.id, tokens.user_id as "userId", users.name as "userName", tokens.scope, tokens.label,
    tokens.created_at_ms as "createdAtMs", tokens.expires_at_ms as "expiresAtMs", tokens.revoked_at_ms as "revokedAtMs",
    tokens.last_used_at_ms as "lastUsedAtMs", tokens.replaced_by as "replacedBy",
    users.blocked_at_ms as "userBlockedAtMs" ${others}
  from ${prefix}tokens join ${prefix}users on users.id = tokens.user_id`

/** A row, as the drivers return it: the values of its columns by their names. */
export type Row = Readonly<Record<string, bigint | string | null>>

/** What a row says: integers become numbers, and null becomes `undefined`. The statement names the columns as the type does. */
export function fromRow<T extends object>(row: Row): T {
  const object: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(row)) {
    object[name] = typeof value === 'bigint' ? Number(value) : (value ?? undefined)
  }
  return object as unknown as T
}

export const NONE_CREATED: CreatedTokens = { created: 0, firstId: 0, newUsers: [] }

/** Which tokens to store, or why to store none. `stored` has the tokens with the same hashes, at the same indexes. */
export function compareTokens<T extends Pick<NewToken, 'userName' | 'scope'>>(
  tokens: readonly T[],
  stored: readonly (Token | undefined)[],
) {
  for (const [index, { userName, scope }] of tokens.entries()) {
    const same = stored[index]
    const differs = same && (same.userName !== userName || same.scope !== scope || same.revokedAtMs !== undefined)
    if (differs) return { missing: [], refused: { index, stored: same } }
  }
  return { missing: tokens.filter((_, index) => stored[index] === undefined) }
}

/** The error of a command for a token that does not exist. */
export const tokenNotFound = (): AppError => new AppError('token_not_found', { message: 'There is no such token.' })

/** The time at which a token ends that another one replaces now, and its column. Throws `rotation_refused`. */
export function endOfReplaced(token: Token, nowMs: number, overlapMs: number) {
  const { id, replacedBy, expiresAtMs = Number.POSITIVE_INFINITY } = token
  const state = tokenState(token, nowMs)
  const hasEnded = state === 'revoked' || state === 'expired'
  if (replacedBy !== undefined) {
    const remedy = hasEnded ? '' : `run plantstore token revoke ${id} to end token ${id} at once, or `
    throw rotationRefused(`Token ${replacedBy} replaces token ${id} already: ${remedy}rotate token ${replacedBy}.`)
  }
  if (hasEnded) throw rotationRefused(`Token ${id} is ${state}: create a new one.`)
  // A revocation holds even if the clock is set back later.
  const column = overlapMs === 0 ? 'revoked_at_ms' : 'expires_at_ms'
  return { column, oldEndsAtMs: Math.min(nowMs + overlapMs, expiresAtMs) }
}

const rotationRefused = (message: string): AppError => new AppError('rotation_refused', { message })

/** The error of a command for a user who does not exist. */
export const userNotFound = (name: string): AppError =>
  new AppError('user_not_found', { message: `There is no user ${name}.` })
