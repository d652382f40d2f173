import type { Store } from '../domain/store.ts'
import { SCOPES, type Scope, type Token } from '../domain/token.ts'

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
]

/** The methods of a store for tokens. */
export type TokenMethods = Pick<
  Store,
  | 'findToken'
  | 'createToken'
  | 'createFirstToken'
  | 'hasTokens'
  | 'listTokens'
  | 'revokeTokens'
  | 'touchTokens'
  | 'tokensVersion'
>

export const toToken = ([
  id,
  userId,
  userName,
  scope,
  label,
  createdAtMs,
  expiresAtMs,
  revokedAtMs,
  lastUsedAtMs,
]: TokenRow): Token => ({
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
})

const optionalNumber = (value: bigint | null): number | undefined => (value === null ? undefined : Number(value))
