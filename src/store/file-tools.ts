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
