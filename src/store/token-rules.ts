// Tested in test/store/contract/tokens.ts.
import type { CreatedTokens, NewToken } from '../domain/store.ts'
import { type Token, tokenState } from '../domain/token.ts'
import { AppError } from '../error.ts'

/** Selects rows of tokens in any database. `prefix` stands before the names of the tables, and `others` are further columns. */
export const selectTokens = (prefix = '', others = ''): string => `
  select tokens.id, tokens.user_id as "userId", users.name as "userName", tokens.scope, tokens.label,
    tokens.created_at_ms as "createdAtMs", tokens.expires_at_ms as "expiresAtMs", tokens.revoked_at_ms as "revokedAtMs",
    tokens.last_used_at_ms as "lastUsedAtMs", tokens.replaced_by as "replacedBy",
    users.blocked_at_ms as "userBlockedAtMs" ${others}
  from ${prefix}tokens join ${prefix}users on users.id = tokens.user_id`

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
export function planRotation(token: Token, nowMs: number, overlapMs: number) {
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
