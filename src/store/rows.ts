import { AppError } from '../domain/error.ts'
import {
  isOptional,
  mapFields,
  PLANT_FIELDS,
  type Plant,
  type PlantValues,
  type StoredPlant,
  valuesOf,
} from '../domain/plant.ts'
import { type NewToken, PAGE_TEXT_LENGTH, type PlantCondition, type PlantPage } from '../domain/store.ts'
import { SCOPES, type Scope, type Token, tokenState, type User } from '../domain/token.ts'

/** The columns of the table `plants`, in every database: the key, and one for each field. */
export const PLANT_KEY = ['user_id', 'id'] as const
export const PLANT_COLUMNS: readonly string[] = [...PLANT_KEY, ...PLANT_FIELDS]
/** The columns of the fields, in SQL. */
export const FIELD_COLUMNS = PLANT_FIELDS.join(', ')

/** How often `deleteIf` reads a plant that others replace at the same time. */
const CONDITION_ATTEMPTS_MAX = 10

/** No plant has these values, because the required ones are missing. */
export const NO_PLANT = mapFields((field) => (isOptional(field) ? '' : null))

const isMissing = (error: unknown): boolean => error instanceof AppError && error.kind === 'plant_not_found'

/**
 * Deletes a plant that fulfils a condition. `deleteSame` deletes it only while it has these values, and else rejects with
 * `plant_not_found`. So the condition holds for the deleted plant, although it is evaluated before the transaction. A refusal
 * passes through the same queue, so that a store which cannot write says so first.
 */
export async function deleteIf(
  condition: PlantCondition,
  read: () => Promise<Plant>,
  deleteSame: (values: PlantValues) => Promise<void>,
): Promise<void> {
  for (let attempt = 0; attempt < CONDITION_ATTEMPTS_MAX; attempt++) {
    const plant = await read().catch((error) => {
      if (!isMissing(error)) throw error
    })
    const isFulfilled = plant !== undefined && condition(plant)
    try {
      return await deleteSame(isFulfilled ? valuesOf(plant) : NO_PLANT)
    } catch (error) {
      if (!isMissing(error) || plant === undefined) throw error
      if (!isFulfilled) throw new AppError('precondition_failed')
      // Another request has deleted the plant, and maybe created it anew.
    }
  }
  throw new AppError('store_busy', { cause: 'other requests replace the plant again and again' })
}

/** The page of at most `limit` plants that the rows begin with. A row behind the page tells that it is not the last. */
export function takePage<Row>(rows: Iterable<Row>, limit: number, toStored: (row: Row) => StoredPlant): PlantPage {
  const plants: StoredPlant[] = []
  let length = 0
  for (const row of rows) {
    if (plants.length === limit || length >= PAGE_TEXT_LENGTH) return { plants, isLast: false }
    const stored = toStored(row)
    plants.push(stored)
    for (const field of PLANT_FIELDS) length += stored.plant[field]?.length ?? 0
  }
  return { plants, isLast: true }
}

/** A row of a token and its user, in every database. */
export type TokenRow = [
  id: bigint,
  userId: bigint,
  userName: string,
  scope: Scope,
  label: string | null,
  createdAtMs: bigint,
  expiresAtMs: bigint | null,
  revokedAtMs: bigint | null,
  lastUsedAtMs: bigint | null,
  replacedBy: bigint | null,
  userBlockedAtMs: bigint | null,
]

export const toToken = ([id, userId, userName, scope, label, ...numbers]: TokenRow): Token => {
  const [createdAtMs, expiresAtMs, revokedAtMs, lastUsedAtMs, replacedBy, userBlockedAtMs] = numbers
  return {
    id: Number(id),
    userId: Number(userId),
    userName,
    // The driver makes a new string for each row. Keep one.
    scope: SCOPES.find((known) => known === scope) ?? scope,
    label: label ?? undefined,
    createdAtMs: Number(createdAtMs),
    expiresAtMs: optionalNumber(expiresAtMs),
    revokedAtMs: optionalNumber(revokedAtMs),
    lastUsedAtMs: optionalNumber(lastUsedAtMs),
    replacedBy: optionalNumber(replacedBy),
    userIsBlocked: userBlockedAtMs !== null,
  }
}

const optionalNumber = (value: bigint | null): number | undefined => (value === null ? undefined : Number(value))

/** A user with the numbers of plants and tokens, as every database returns it. */
export type UserRow = [name: string, createdAtMs: bigint, blockedAtMs: bigint | null, plants: bigint, tokens: bigint]

export const toUser = ([name, createdAtMs, blockedAtMs, plants, tokens]: UserRow): User => ({
  name,
  createdAtMs: Number(createdAtMs),
  plants: Number(plants),
  tokens: Number(tokens),
  blockedAtMs: optionalNumber(blockedAtMs),
})

/** Which tokens an import stores, or why it stores none. `stored` has the tokens with the same hashes, at the same indexes. */
export function compareTokens(tokens: readonly NewToken[], stored: readonly (Token | undefined)[]) {
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
