const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** What a user's name may have. */
export const USER_NAME_CHARACTERS = `${BASE62}._@-`
export const USER_NAME_LENGTH_MAX = 64
/** A user's name. Administrators use it to name the owner of tokens and plants. */
export const USER_NAME = new RegExp(`^[${USER_NAME_CHARACTERS}]{1,${USER_NAME_LENGTH_MAX}}$`)
/** The same rule in words. */
export const USER_NAME_RULE = '1 to 64 characters of A-Z a-z 0-9 . _ @ -'

/** The most milliseconds before or after 1970-01-01 UTC that a `Date` can show (ECMA-262 §21.4.1.1). */
export const TIME_MAX_MS = 8.64e15

/** A user's number. It is never given to another user. */
export type UserId = number
/** The numbers of users begin with 1, so this is no user's. */
export const NOBODY: UserId = 0

/** What the names of users begin with whom an identity provider signs in. No command makes such a user. */
export const PROVIDER_USER_PREFIX = 'oidc.'
/** The rule for the names of other users in words. */
export const OTHER_NAME_RULE = `a name that does not begin with ${PROVIDER_USER_PREFIX} as those of users of an identity provider do`

/** The name of the user whom an issuer knows by a subject. No issuer has a NUL, so no other issuer and subject give this name. */
export const providerUserName = (issuer: string, subject: string): string =>
  PROVIDER_USER_PREFIX + new Bun.CryptoHasher('sha256').update(`${issuer}\0${subject}`).digest('base64url')

/** A user, with the numbers of their plants and tokens. */
export interface User {
  readonly name: string
  readonly createdAtMs: number
  readonly plants: number
  readonly tokens: number
  /** Since when the user is blocked: no token of the user gives access. */
  readonly blockedAtMs: number | undefined
}

/** What a token may do: `read` lists and gets; `write` also creates, puts and deletes. */
export const SCOPES = ['read', 'write'] as const
export type Scope = (typeof SCOPES)[number]

/** A token's number, by which administrators name it. It is never given to another token. */
export type TokenId = number

/** A token as it is stored. Times are milliseconds since 1970-01-01 UTC. Only its holder has its text. */
export interface Token {
  readonly id: TokenId
  readonly userId: UserId
  readonly userName: string
  readonly scope: Scope
  readonly label: string | undefined
  readonly createdAtMs: number
  readonly expiresAtMs: number | undefined
  readonly revokedAtMs: number | undefined
  readonly lastUsedAtMs: number | undefined
  /** The token that replaces this one, if this one was rotated. */
  readonly replacedBy: TokenId | undefined
  readonly userBlockedAtMs: number | undefined
}

/**
 * The accepted token of a request. The server changes `lastUsedAtMs` at once when the token is used, and stores it later. A JWT
 * of an identity provider is not stored: it has no id but a subject, and may have no scope. Its user is `NOBODY` before the
 * first plant. It is verified again at `expiresAtMs`, and `claimedExpiresAtMs` is its own end.
 */
export interface Caller extends Pick<Token, 'userId' | 'userName' | 'expiresAtMs' | 'userBlockedAtMs'> {
  readonly id?: TokenId
  readonly subject?: string
  readonly claimedExpiresAtMs?: number
  readonly scope: Scope | undefined
  readonly revokedAtMs?: Token['revokedAtMs']
  lastUsedAtMs?: Token['lastUsedAtMs']
}

/** The state of a token at a time. Only an `active` one gives access. The order is revoked, expired, blocked. */
export function tokenState(token: Caller, nowMs: number): 'active' | 'blocked' | 'expired' | 'revoked' {
  if (token.revokedAtMs !== undefined) return 'revoked'
  if (token.expiresAtMs !== undefined && token.expiresAtMs <= nowMs) return 'expired'
  return token.userBlockedAtMs === undefined ? 'active' : 'blocked'
}

export const TOKEN_RANDOM_BYTES = 32

/** What a new token shall be. `expiresAfterMs` counts from its creation. */
export type TokenRequest = Pick<Token, 'userName' | 'scope' | 'label'> & { readonly expiresAfterMs: number | undefined }

/** Makes a random token: its text, which only its holder gets, and what the store keeps. */
export function makeToken({ userName, scope, label, expiresAfterMs }: TokenRequest, createdAtMs: number) {
  const text = tokenText(crypto.getRandomValues(new Uint8Array(TOKEN_RANDOM_BYTES)))
  const expiresAtMs = expiresAfterMs === undefined ? undefined : createdAtMs + expiresAfterMs
  return { text, newToken: { userName, scope, label, hash: hashToken(text), createdAtMs, expiresAtMs } }
}

/** Every token begins with this, so that people and secret scanners recognise one. */
export const TOKEN_PREFIX = 'plst_'
const SECRET_LENGTH = 43
const CHECKSUM_LENGTH = 6
const SHAPE = new RegExp(`^${TOKEN_PREFIX}[0-9A-Za-z]{${SECRET_LENGTH + CHECKSUM_LENGTH}}$`)

/** The text of a token: the prefix, 43 base62 characters of the random bytes, 6 of the CRC-32 over those 43. */
export function tokenText(random: Uint8Array): string {
  const secret = base62(BigInt(`0x${random.toHex()}`), SECRET_LENGTH)
  return TOKEN_PREFIX + secret + checksum(secret)
}

/** Whether a text can be a token at all. The checksum finds typing errors without a look-up. */
export function isTokenText(text: string): boolean {
  if (!SHAPE.test(text)) return false
  const secret = text.slice(TOKEN_PREFIX.length, TOKEN_PREFIX.length + SECRET_LENGTH)
  return text.endsWith(checksum(secret))
}

/** The only form in which a token is stored: its SHA-256, 32 bytes. */
export const hashToken = (text: string): Uint8Array => Bun.CryptoHasher.hash('sha256', text)

/** The hash of a token's text as lines of `token import` have it. */
export const hashText = (hash: Uint8Array): string => `sha256:${hash.toHex()}`

const checksum = (secret: string): string => base62(BigInt(Bun.hash.crc32(secret)), CHECKSUM_LENGTH)

function base62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; rest > 0n; rest /= 62n) text = BASE62.charAt(Number(rest % 62n)) + text
  return text.padStart(length, '0')
}
