import type { Store } from '../domain/store.ts'
import { SCOPES, type Scope, type Token } from '../domain/token.ts'

/** A token with its user, as every database tells it. */
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

/** The part of a store that is about tokens. */
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

/** The token of a row. */
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
  // Each row has a text of its own; one is enough.
  scope: SCOPES.find((known) => known === scope) ?? scope,
  label: label ?? undefined,
  createdAtMs: Number(createdAtMs),
  expiresAtMs: optionalNumber(expiresAtMs),
  revokedAtMs: optionalNumber(revokedAtMs),
  lastUsedAtMs: optionalNumber(lastUsedAtMs),
})

const optionalNumber = (value: bigint | null): number | undefined => (value === null ? undefined : Number(value))
