// Tested in test/store/contract.
import type { NewPlant, Plant, StoredPlant } from './plant.ts'
import type { Token, TokenId, User, UserId } from './token.ts'

/**
 * Everything that the service stores. The comments of its interfaces are the contract, and test/store/contract tests every store
 * against it. A write is durable when it resolves, and every later read in any process shows it. Any method may reject with
 * `store_full` or `store_busy`: nothing was and nothing will be stored. It may reject with `store_failed`: `outcomeIsUnknown`
 * then tells whether a write may be stored all the same. Times are milliseconds since 1970-01-01 UTC.
 */
export interface Store extends Plants, Tokens, Users, Health {
  /** Closes the store. Everything that was stored stays stored. */
  close(): Promise<void>
}

/**
 * How durable a successful write is. With `full` it is on disk. With `normal` it survives the end of the process, but a power
 * loss may take all writes after some point. `storage` is `full` on a PostgreSQL server whose storage keeps writes without fsync.
 */
export const DURABILITIES = ['full', 'normal', 'storage'] as const
export type Durability = (typeof DURABILITIES)[number]

/** Within this time a server sees what another process has changed in the same file. */
export const OTHERS_SEEN_WITHIN_MS = 50
/** Within this time a server sees which tokens another process has changed in a database on a server. */
export const TOKEN_CHANGES_SEEN_WITHIN_MS = 1000

/** See `Plants.plantsVersion`. */
export type Version = number

/** The largest `limit` of a list: an int32. */
export const LIMIT_MAX = 2147483647

/** Which part of a list to read: at most `limit` plants, those with an `id` larger than `after`; from the first without it. */
export interface PlantRange {
  readonly after: bigint | undefined
  readonly limit: number
}

/** A part of a list, by ascending id. */
export interface PlantPage {
  readonly plants: readonly StoredPlant[]
  /** No plant follows the last of these. */
  readonly isLast: boolean
}

/** The page after the largest id. */
export const EMPTY_PAGE: PlantPage = { plants: [], isLast: true }

/** A page ends with the plant whose text brings it to this length, in UTF-16 code units. So large plants make short pages. */
export const PAGE_TEXT_LENGTH = 256 * 1024

/**
 * What a write demands of the stored plant: that there is one, that there is none, or that a function holds for it, with
 * `undefined` if there is none. A function depends on nothing else. It is called again if others write the plant meanwhile.
 */
export type PlantCondition = 'some' | 'none' | ((stored: Plant | undefined) => boolean)

/** The plants of all users, and how a cache knows whether they are still the same. */
export interface Plants {
  /**
   * Stores a plant. Rejects with `plant_exists` if the user has that id, with `token_invalid` if there is no such user, and with
   * `quota_exceeded` if the user has as many plants as the store allows. Processes with the same quota together never exceed it.
   */
  createPlant(user: UserId, plant: NewPlant): Promise<void>
  /** The user's plants of a range, as one page. The page ends early with the plant that brings its text to `PAGE_TEXT_LENGTH`. */
  listPlants(user: UserId, range: PlantRange): Promise<PlantPage>
  /** A plant of the user. Rejects with `plant_not_found`. */
  getPlant(user: UserId, id: bigint): Promise<Plant>
  /**
   * Replaces a plant as a whole, or makes it. Resolves to whether it made the plant. Rejects with `precondition_failed` if
   * `condition` does not hold for what it would replace. A put that would make a plant rejects as `createPlant` does, but never
   * with `plant_exists`.
   */
  putPlant(user: UserId, plant: NewPlant, condition?: PlantCondition): Promise<boolean>
  /**
   * Deletes a plant. Rejects with `plant_not_found` if the user does not have it, and with `precondition_failed` if `condition`
   * does not hold for the plant that would be deleted.
   */
  deletePlant(user: UserId, id: bigint, condition?: PlantCondition): Promise<void>
  /**
   * The version of the user's plants. A caller that gets it before it reads may cache what it read while the version stays. A
   * change in this process gives the plants a version that they never had, before the change is answered. A change in another
   * process does so within `OTHERS_SEEN_WITHIN_MS`. This costs no I/O. While the version is not known it is `undefined`: then
   * the caller may neither fill nor use its cache.
   */
  plantsVersion(user: UserId): Version | undefined
  /**
   * Whether all changes of the user's plants since a version have made or replaced plants with ids above this one. Then a list
   * that its limit ends at this id, and that others follow, is still the same. False if it is not known.
   */
  isUnchangedUpTo(user: UserId, since: Version, last: bigint): boolean
}

/** How many tokens or users a page has if the caller does not say it. A command that lists all of them reads page after page. */
export const PAGE_ROWS = 1000

/** Which tokens or users to read: at most `limit`, those after this id or name; from the first without it. */
export interface RowRange<Key> {
  readonly after?: Key | undefined
  readonly limit?: number | undefined
}

/** A token to store. `hash` has 32 bytes. `userName` becomes a user if there is no user of that name. */
export interface NewToken extends Pick<Token, 'userName' | 'scope' | 'label' | 'createdAtMs' | 'expiresAtMs'> {
  readonly hash: Uint8Array
}

/** How many tokens were created, the id of the first one, and the names of new users. Nothing is new if `refused` is there. */
export interface CreatedTokens {
  readonly created: number
  readonly firstId: TokenId
  readonly newUsers: readonly string[]
  readonly refused?: { readonly index: number; readonly stored: Token } | undefined
}

/** Which tokens to revoke: one token, or all tokens of a user. */
export type TokenSelection = { readonly id: TokenId } | { readonly userName: string }

/** The tokens of all users, without their texts. */
export interface Tokens {
  /** The token with that hash, in any state. */
  findToken(hash: Uint8Array): Promise<Token | undefined>
  /** The version of all tokens and users, as `plantsVersion`. See `hasSameTokens`. It never falls. */
  tokensVersion(): Version | undefined
  /**
   * Whether what was found of the user and the user's tokens as of a version is still true. Last uses do not count. False if that
   * is not known. After a change of another user, a store in a file may return false too. In a store on another machine, changes
   * of other processes show within `TOKEN_CHANGES_SEEN_WITHIN_MS`.
   */
  hasSameTokens(user: UserId, since: Version): boolean
  /**
   * Stores tokens in one transaction, and the users whose names are new. Their ids follow each other. Others wait meanwhile, so
   * the caller limits the number of tokens. With `ifNone`, it stores nothing if there is a token in any state.
   *
   * The hashes must differ. A token whose hash is stored already stays as it is. If it is revoked, or has another user or scope,
   * nothing is stored, and `refused` has it and the index of the other.
   */
  createTokens(tokens: readonly NewToken[], options?: { readonly ifNone?: boolean }): Promise<CreatedTokens>
  /** Tokens, or those of a user, by ascending id. Rejects with `user_not_found`. */
  listTokens(range?: RowRange<TokenId> & { readonly userName?: string | undefined }): Promise<readonly Token[]>
  /** Revokes the selected tokens. Returns how many were not revoked. Rejects with `token_not_found` or `user_not_found`. */
  revokeTokens(selection: TokenSelection, nowMs: number): Promise<number>
  /**
   * Stores a token that replaces another one, and ends that one in the same transaction: it expires after the overlap, unless it
   * expires earlier. Without an overlap it is revoked. Returns the id of the new token, and the time at which the old one ends.
   * Rejects with `token_not_found`, or with `rotation_refused` if the old token is revoked, expired or replaced already.
   */
  rotateToken(
    id: TokenId,
    successor: NewToken,
    overlapMs: number,
  ): Promise<{ readonly id: TokenId; readonly oldEndsAtMs: number }>
  /** Stores the last use of tokens that exist. A later use that is stored already stays, unless it is after `nowMs`. */
  touchTokens(lastUsedAtMs: ReadonlyMap<TokenId, number>, nowMs: number): Promise<void>
}

/** A user as `findUser` finds it. */
export type FoundUser = Pick<User, 'blockedAtMs'> & { readonly id: UserId }

/** How to watch and stop a long task. */
export interface TaskOptions {
  /** Called with the number of plants that are done, and the number at the start. The task waits for it between two batches. */
  readonly onProgress?: (done: number, total: number) => void | Promise<void>
  /** Stops the task before it begins, or between two batches. The task then throws the reason of the signal. */
  readonly signal?: AbortSignal
}

/** The users, to whom tokens and plants belong. */
export interface Users {
  /** Users, or the one with a name, in the order of the bytes of their names. */
  listUsers(range?: RowRange<string> & { readonly name?: string | undefined }): Promise<readonly User[]>
  /** The user with a name. */
  findUser(name: string): Promise<FoundUser | undefined>
  /** The id of the user with a name. Stores a missing one. Rejects with `token_invalid` for a blocked one. */
  ensureUser(name: string, createdAtMs: number): Promise<UserId>
  /**
   * Blocks a user as of a time, or unblocks the user if there is no time. A user who is blocked already keeps the earlier time.
   * Returns whether it changed something. Rejects with `user_not_found`, or with `createsUser` stores and blocks a missing user.
   */
  setUserBlock(name: string, blockedAtMs: number | undefined, createsUser?: boolean): Promise<boolean>
  /**
   * Deletes a user: first it blocks the user and deletes the tokens, then the plants in batches, then the name. Between two
   * batches it holds no lock, so that others can write. Deleted data is overwritten if the database can do that. Returns the
   * numbers of deleted plants and tokens. Rejects with `user_not_found`, or with the reason of the signal. After it was stopped,
   * the user stays blocked, and another call deletes the rest.
   */
  deleteUser(name: string, options?: TaskOptions): Promise<{ readonly plants: number; readonly tokens: number }>
}

/** The metrics count the tokens that expire within this time, but at most so many. */
export const EXPIRES_SOON_MS = 7 * 24 * 3_600_000
export const EXPIRING_TOKENS_MAX = 1000

/** What a store measures for the metrics. It leaves out what it cannot know. Times are seconds since 1970-01-01 UTC. */
export interface Measurements {
  readonly databaseBytes?: number | undefined
  /** The write-ahead log: the writes that are not in the database file yet. */
  readonly walBytes: number
  /** The disk of the database: its size, and the space that is free for this process. */
  readonly diskBytes?: number
  readonly diskFreeBytes?: number
  /** When a checkpoint last brought the whole WAL into the database, or when the store was opened. */
  readonly checkpointedAtS?: number
  /** When the latest backup of this database began, and its size. Both are 0 if there is none. */
  readonly lastBackupAtS?: number
  readonly lastBackupBytes?: number
  /** The tokens that expire within `EXPIRES_SOON_MS`, at most `EXPIRING_TOKENS_MAX`. Revoked and replaced ones do not count. */
  readonly expiringTokens: number
}

/** Whether the store works, and how much it has to do. */
export interface Health {
  /** The writes that are not durable yet, and how long the first of them has waited: 0 if none waits. Costs no I/O. */
  load(): { readonly waitingWrites: number; readonly longestWaitMs: number }
  /** Measures the store for the metrics. The cost does not depend on the number of plants. */
  measure(nowMs: number): Promise<Measurements>
  /** Resolves if the store can be read and written now. It writes and syncs. */
  checkReady(): Promise<void>
  /** Reads everything and returns the problems, a line each. Empty if there are none. */
  checkIntegrity(): Promise<readonly string[]>
}
