// Tested in test/http/store-damaged.test.ts.
import { AppError, type ErrorKind } from '../domain/error.ts'
import { EngineError, type Remedy } from '../engine/errors.ts'

/** How to replace a damaged database file. SQLite would replay the WAL of the old database into the restored one. */
export const RESTORE =
  'End the server, move the database with the -wal and -shm files beside it away, then run plantstore restore: see docs/how-to/troubleshoot.md.'

/** How the messages of the engine end, because it knows none of our commands. */
const REMEDIES: Readonly<Record<Remedy, string>> = {
  restore: `. ${RESTORE}`,
  check: ': run plantstore check, which lets it start again if nothing is damaged: see docs/how-to/troubleshoot.md.',
  undo: '. Undo that, or move the database with the -wal and -shm files beside it away and run plantstore restore: see docs/how-to/backup-restore.md.',
  'back up': ' by plantstore backup.',
  dump: ': see docs/how-to/troubleshoot.md to dump it.',
}

/** The store cannot be opened. The message is one line for the operator, and the process ends with exit code 3. */
export const storeUnusable = (message: string, cause?: unknown): AppError =>
  new AppError('store_unusable', { message, cause })

/** Makes an `AppError` of an error of the engine, whose kinds are kinds of ours. Other errors stay as they are. */
export function fromEngine(error: unknown): unknown {
  if (!(error instanceof EngineError)) return error
  const { kind, message, remedy, outcomeIsUnknown, cause } = error
  const words = remedy === undefined ? message : message + REMEDIES[remedy]
  return new AppError(kind as ErrorKind, { message: words, outcomeIsUnknown, cause })
}

/** Throws what `fromEngine` makes of an error, to end a promise of the engine. */
export function throwFromEngine(error: unknown): never {
  throw fromEngine(error)
}
