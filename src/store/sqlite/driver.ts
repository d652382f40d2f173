import { constants, Database, type SQLQueryBindings } from 'bun:sqlite'
import { sleepSync } from 'bun'
import type { Durability } from '../../domain/store.ts'
import { LOCK_MAX_WAIT_MS } from '../group-queue.ts'
import { isLocked } from './errors.ts'

const WAL_RETRY_MS = 10

/**
 * Opens a connection. All connections are opened here. A schema cannot make them run functions with side effects, and they
 * refuse damaged pages when they read them (https://sqlite.org/security.html).
 */
export function openDatabase(path: string, options: ConstructorParameters<typeof Database>[1]): Database {
  const db = new Database(path, options)
  db.run('pragma trusted_schema = off; pragma cell_size_check = on')
  return db
}

/** How durable a write to a file can be. */
export type FileDurability = Exclude<Durability, 'storage'>

/** Opens a connection that writes. With durability `full` a commit returns after its sync. */
export function openWriter(path: string, durability: FileDurability, { create = true } = {}): Database {
  const db = openDatabase(path, { readwrite: true, create, safeIntegers: true, strict: true })
  try {
    db.run(`pragma busy_timeout = ${LOCK_MAX_WAIT_MS}`)
    enterWalMode(db)
    db.run(`pragma synchronous = ${durability}`)
    // On macOS a sync reaches the disk only with this. Elsewhere it has no effect.
    db.run('pragma fullfsync = 1')
    db.run('pragma foreign_keys = on')
    // SQLite overwrites deleted rows with zeros, so that nothing of a deleted user stays in the file.
    db.run('pragma secure_delete = on')
    // An automatic checkpoint would hide a failing sync. Ours does not.
    db.run('pragma wal_autocheckpoint = 0')
    return db
  } catch (error) {
    db.close(true)
    throw error
  }
}

/**
 * Opens a connection that reads, also while another one writes. With `recovers` it takes back a write that a kill has interrupted
 * (https://sqlite.org/lockingv3.html#hot_journals).
 */
export function openReader(path: string, { recovers = false } = {}): Database {
  const access = recovers ? { readwrite: true, create: false } : { readonly: true }
  const db = openDatabase(path, { ...access, safeIntegers: true, strict: true })
  db.run(`pragma busy_timeout = ${LOCK_MAX_WAIT_MS}`)
  return db
}

/** Opens a connection that reads a database and leaves no trace. No process may have it open (https://sqlite.org/uri.html). */
export const openImmutable = (path: string): Database =>
  openDatabase(
    `${Bun.pathToFileURL(path).href}?immutable=1`,
    constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI,
  )

/** SQLite does not wait for locks while it changes the journal mode. Two first starts at once need that wait. */
function enterWalMode(db: Database): void {
  const deadlineMs = performance.now() + LOCK_MAX_WAIT_MS
  for (;;) {
    try {
      db.run('pragma journal_mode = wal')
      return
    } catch (error) {
      if (!isLocked(error) || performance.now() > deadlineMs) throw error
      sleepSync(WAL_RETRY_MS)
    }
  }
}

/** The statement that inserts one row, with a parameter for each column. */
export const insertInto = (table: string, columns: readonly string[]): string =>
  `insert into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`

/** The rows of a statement that is used once. Its columns, of strict tables, have the types that the caller names. */
export const rowsOf = <Row = unknown[]>(db: Database, sql: string, ...values: SQLQueryBindings[]): Row[] =>
  db.prepare<unknown, SQLQueryBindings[]>(sql).values(...values) as Row[]
