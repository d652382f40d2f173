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
