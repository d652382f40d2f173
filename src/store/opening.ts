import { AppError } from '../domain/error.ts'
import type { StoreObserver } from '../domain/statistics.ts'
import type { Durability } from '../domain/store.ts'

/** How a store is opened. */
export interface OpenOptions {
  /** Refuses a store that is not there instead of making it. */
  readonly mustExist?: boolean
  /** `full` if left out. */
  readonly durability?: Durability
  /** Writes in a thread of its own, so that reads never wait for a sync: what a server needs, and a command does not. */
  readonly writesInThread?: boolean
  /** Opens a store whose server cannot be reached, and tries to reach it until it is: what it is asked before rejects. */
  readonly keepsTrying?: boolean
  /** Of a server: a file with the password, which is read for every connection. */
  readonly passwordFile?: string | undefined
  /** Of a server: prepares no statements, which poolers of transactions cannot keep. */
  readonly preparesNothing?: boolean
  /** Told where the store is, if this created it. */
  readonly onCreated?: (where: string) => void
  /** Called with each event that the operator should know of. */
  readonly onEvent?: (event: StoreEvent) => void
  /** Told of every group of writes, for whoever operates the store. */
  readonly observer?: StoreObserver | undefined
}

/** An event that the operator should know of although nothing has failed: a message, and the sizes that it is about. */
export interface StoreEvent {
  readonly level: 'warn' | 'info'
  readonly message: string
  readonly sizes: Readonly<Record<string, number>>
}

/** What to do about a damaged store. A WAL of another time would be replayed into the backup, and destroy it. */
export const RESTORE =
  'End the server, move the database with the -wal and -shm files beside it away, then run plantstore restore.'

/** The same of a database on a server. */
export const RESTORE_SERVER = 'End all servers that use the database, then restore a backup of it.'

/** What a file is that is read: the database that a server uses, or a backup that is to take its place. */
export type Role = 'database' | 'backup'

const ADVICE: Readonly<Record<Role, string>> = {
  database: RESTORE,
  backup: 'Name another one: nothing was changed.',
}

/** Why a file that is not whole is not used, and what helps. */
export const notWhole = (role: Role, path: string, problem: string, cause?: unknown): AppError =>
  unusable(`The ${role} ${path} ${problem}. ${ADVICE[role]}`, cause)

/** Why a store cannot be opened: one line for the operator, who finds the process ended with exit code 3. */
export const unusable = (message: string, cause?: unknown): AppError =>
  new AppError('store_unusable', { message, cause })

/** Why a store is refused that `copy` has begun to fill. */
export const unfinished = (database: string): string =>
  `The database ${database} is a copy that is not finished: run plantstore copy again, which starts it over.`

/** How much a store holds. */
export interface Counts {
  readonly users: number
  readonly tokens: number
  readonly plants: number
}

/** How a copy of a store is made. */
export interface CopyOptions {
  /** Told, of the plants, how many are copied, and how many there are. */
  readonly onProgress?: (done: number, total: number) => void
  /** Ends it early: then nothing is left of it, and the reason of the signal is thrown. */
  readonly signal?: AbortSignal
  /** Replaces what is there already, where that can be. */
  readonly force?: boolean
}

/** Where a copy of a store is now, and how much it holds. */
export interface Copied extends Counts {
  readonly path: string
  readonly bytes: number
}

/** A backup without a name, which is read once. */
export interface ReadableBackup extends Counts {
  readonly bytes: number
  readonly chunks: Iterable<Uint8Array>
}

/** The same of a backup that was restored. */
export interface Restored extends Copied {
  /** The tables and indexes of other programs that were left out, for a message. Empty if there were none. */
  readonly dropped: string
}

/** A store as it is now. Of tokens those are active that let in. */
export interface StoreStatus extends Counts {
  readonly path: string
  readonly engine: string
  /** Whether another process has it open. */
  readonly isInUse: boolean
  /** The version of its schema, and the one that this executable brings it up to. */
  readonly schema: number
  readonly schemaKnown: number
  readonly bytes: number
  /** Of these, what deleted plants have left, to be used again. */
  readonly freeBytes: number
  readonly walBytes: number
  readonly activeTokens: number
}
