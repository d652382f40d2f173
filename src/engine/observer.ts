// Tested in test/store/sqlite/statistics.test.ts.
/** An event that the operator should know of although nothing has failed: a message, and the sizes that it is about. */
export interface EngineEvent {
  readonly level: 'warn' | 'info'
  readonly message: string
  readonly sizes: Readonly<Record<string, number>>
}

/** An engine calls it with each thing that it does. It must be fast and must not throw. */
export interface EngineObserver {
  /** A group commit has made so many writes durable. The commit took `syncMs`. */
  recordGroup(writes: number, syncMs: number): void
  /** A write was refused before it began: too many wait, it waited too long, or another process kept the database locked. */
  recordRefusal(reason: 'queue_full' | 'locked'): void
}
