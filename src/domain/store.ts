import { type NewPlant, PLANT_FIELDS, type Plant } from './plant.ts'
import type { StoreStatistics } from './statistics.ts'
import type { Scope, Token, TokenId, UserId } from './token.ts'
import type { User } from './user.ts'

/** A plant with its identifier, as a page of a list holds it. */
export interface StoredPlant extends Plant {
  readonly id: bigint
}

/** The largest `limit` of a list: an int32. */
export const LIMIT_MAX = 2147483647

/**
 * What success of a write means: `full` that it is on disk; `normal` that it survives the end of the process, but that
 * a loss of power may take the latest writes, all from some point on.
 */
export const DURABILITIES = ['full', 'normal'] as const
export type Durability = (typeof DURABILITIES)[number]

/** See `Store.tokensVersion`. */
export const TOKEN_CHANGES_SEEN_WITHIN_MS = 1000

/** See `Store.plantsVersion`. */
export type Version = number

/** Which part of a list to read: at most `limit` plants, those with an `id` larger than `after`; from the first without it. */
export interface Page {
  readonly after: bigint | undefined
  readonly limit: number
}

/** A part of a list, by ascending id. */
export interface PlantPage {
  readonly plants: readonly StoredPlant[]
  /** No plant follows the last of these. */
  readonly isLast: boolean
}

/** A token to be remembered. `hash` is 32 bytes; `userName` becomes a user if it is none yet. */
export interface NewToken {
  readonly userName: string
  readonly hash: Uint8Array
  readonly scope: Scope
  readonly label: string | undefined
  readonly createdAtMs: number
  readonly expiresAtMs: number | undefined
}

/** Which tokens to revoke: one by its identifier or by the hash of its text, or all of a user. */
export type TokenSelection = { readonly id: TokenId } | { readonly hash: Uint8Array } | { readonly userName: string }

/** How the deletion of a user is watched and stopped. */
export interface DeletionOptions {
  /**
   * Called when the tokens are deleted and before each batch of plants: how many plants are deleted, and how many there were.
   * The deletion waits for it and holds no lock meanwhile.
   */
  readonly onProgress?: (deleted: number, total: number) => void | Promise<void>
  /** Stops the deletion before it begins or between two batches. */
  readonly signal?: AbortSignal
}

/** A page ends with the plant whose text brings it to this length, in UTF-16 code units. So large plants make short pages. */
export const PAGE_TEXT_LENGTH = 256 * 1024

/** The length of a plant's text, in UTF-16 code units. */
export function textLength(plant: Plant): number {
  let length = 0
  for (const field of PLANT_FIELDS) length += plant[field]?.length ?? 0
  return length
}

/**
 * Everything the service remembers. These comments are the contract; test/store/contract.test.ts runs it against every
 * implementation. Any method may reject with `store_full` or `store_busy` (nothing was and nothing will be stored) or
 * `store_failed` (then `outcomeIsUnknown` says whether a write may be stored all the same). A write is durable when it
 * resolves, and every read that begins later, in any process, shows it. Times are milliseconds since 1970-01-01 UTC.
 */
export interface Store extends StoreStatistics {
  /** Stores a plant. Rejects with `plant_exists` if the user has that id, with `token_invalid` if the user is gone. */
  createPlant(user: UserId, plant: NewPlant): Promise<void>
  /** The user's plants of one page. The page ends early with the plant that brings its text to `PAGE_TEXT_LENGTH`. */
  listPlants(user: UserId, page: Page): Promise<PlantPage>
  /** Deletes a plant. Rejects with `plant_not_found` if the user does not have it. */
  deletePlant(user: UserId, id: bigint): Promise<void>
  /**
   * A number for the state of the user's plants: after a change of them that was answered, in any process, it is never
   * again what it was before. Whoever asks before a read may keep what was read for as long as the number stays. It
   * costs no I/O. `undefined` where it cannot be told, be it just now: then nothing may be kept or used.
   */
  plantsVersion(user: UserId): Version | undefined
  /**
   * Whether all that happened to the user's plants after a version is that some with ids above this one were created:
   * then a list that ends with it, and is followed by more, is what it was. May say no where it cannot be told.
   */
  hasOnlyGrown(user: UserId, since: Version, above: bigint): boolean

  /** The token with that hash, in whatever state. */
  findToken(hash: Uint8Array): Promise<Token | undefined>
  /**
   * The same as `plantsVersion` for all tokens and users; the time of a token's last use does not count. Where the store is
   * on another machine, what another process has changed shows within `TOKEN_CHANGES_SEEN_WITHIN_MS`.
   */
  tokensVersion(): Version | undefined
  /** Remembers a token, and its user if that name is new. */
  createToken(token: NewToken): Promise<{ readonly id: TokenId; readonly userIsNew: boolean }>
  /** Does as `createToken` if there is no token yet, in whatever state; of several at once one does. Returns whether. */
  createFirstToken(token: NewToken): Promise<boolean>
  /** Whether there is any token, in whatever state. */
  hasTokens(): Promise<boolean>
  /** All tokens, or those of a user, by ascending id. Rejects with `user_not_found`. */
  listTokens(userName?: string): Promise<readonly Token[]>
  /**
   * Revokes what is selected and not revoked yet. Returns how many are revoked by this call. Rejects with
   * `token_not_found` or `user_not_found` if the selection names nothing that exists.
   */
  revokeTokens(selection: TokenSelection, nowMs: number): Promise<number>
  /** Notes the last use of tokens. A token that is gone is passed over. */
  touchTokens(lastUsedAtMs: ReadonlyMap<TokenId, number>): Promise<void>

  /** All users by name. */
  listUsers(): Promise<readonly User[]>
  /**
   * Deletes a user: first the tokens, then the plants in batches between which others can write, then the name. What
   * was deleted is overwritten, not only forgotten, where the database can do that. Returns how much that was. Rejects with
   * `user_not_found`, and with the reason of the signal. Stopped half-way, it can be called again.
   */
  deleteUser(name: string, options?: DeletionOptions): Promise<{ readonly plants: number; readonly tokens: number }>

  /** Resolves if the store can be read and written now: it writes and syncs. */
  checkReady(): Promise<void>
  /** Reads everything and returns what is wrong with it, a line each; nothing where all is well. */
  checkIntegrity(): Promise<readonly string[]>
  /** Ends the use of the store. What was stored before stays stored. */
  close(): Promise<void>
}
