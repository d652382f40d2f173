// Tested in test/engine/sqlite/open.test.ts.
import { constants, Database, type SQLQueryBindings } from 'bun:sqlite'
import { sleepSync } from 'bun'
import { storeUnusable } from '../errors.ts'
import { LOCK_MAX_WAIT_MS } from '../group-queue.ts'
import { isLocked } from './errors.ts'
import { fileIdentity } from './files/file-system.ts'

const LOCK_RETRY_MS = 10
/** How often a file is opened that others replace at the same time. */
const OPENINGS_MAX = 10

/**
 * Opens a connection. All connections are opened here. A schema cannot make them run functions with side effects, and they
 * refuse damaged pages when they read them (https://sqlite.org/security.html).
 */
export function openDatabase(path: string, options: ConstructorParameters<typeof Database>[1]): Database {
  const db = new Database(path, options)
  db.run('pragma trusted_schema = off; pragma cell_size_check = on')
  return db
}

/**
 * Opens a connection to the file that is at a path, and takes its first lock by `lock`. SQLite names the WAL after the path and
 * opens it with that lock. So a connection that waited while `restore` replaced its file would take the WAL of the new file for
 * its own. This opens such a file again. The lock keeps `restore` away, if it lasts: in WAL mode it lasts as long as the
 * connection. While others have locks, this waits, because SQLite would wait without a look at the path.
 */
export function openLocked(
  path: string,
  options: ConstructorParameters<typeof Database>[1],
  lock: (db: Database) => void,
  waitMs = LOCK_MAX_WAIT_MS,
): Database {
  const deadlineMs = performance.now() + waitMs
  for (let openings = 0; openings < OPENINGS_MAX; openings++) {
    const identity = fileIdentity(path)
    const isReplaced = () => fileIdentity(path) !== identity
    // Closing the connection to a file that was replaced leaves the WAL at the path alone.
    using stack = new DisposableStack()
    const db = stack.adopt(openDatabase(path, options), (opened) => opened.close(true))
    while (!isReplaced()) {
      try {
        lock(db)
        if (isReplaced()) break
        stack.move()
        return db
      } catch (error) {
        if (!isLocked(error) || performance.now() > deadlineMs) throw error
        sleepSync(LOCK_RETRY_MS)
      }
    }
  }
  throw storeUnusable(`The database ${path} is being replaced by another process: try again.`)
}

/** A successful write is on disk with `full`. With `normal`, a power loss may take all writes after some point. */
export type Durability = 'full' | 'normal'

/** Opens a connection that writes to a file that is there. With durability `full` a commit returns after its sync. */
export function openWriteConnection(path: string, durability: Durability): Database {
  const access = { readwrite: true, create: false, safeIntegers: true, strict: true }
  const db = openLocked(path, access, (opened) => opened.run('pragma journal_mode = wal'))
  db.run(`pragma busy_timeout = ${LOCK_MAX_WAIT_MS}`)
  db.run(`pragma synchronous = ${durability}`)
  // On macOS a sync reaches the disk only with this. Elsewhere it has no effect.
  db.run('pragma fullfsync = 1')
  db.run('pragma foreign_keys = on')
  // SQLite overwrites deleted rows with zeros, so that nothing that was deleted stays in the file.
  db.run('pragma secure_delete = on')
  // An automatic checkpoint would hide a failing sync. Ours does not.
  db.run('pragma wal_autocheckpoint = 0')
  return db
}

/**
 * Opens a connection that reads, also while another one writes. With `recovers` it takes back a write that a kill has interrupted
 * (https://sqlite.org/lockingv3.html#hot_journals).
 */
export function openReader(path: string, { recovers = false } = {}): Database {
  const access = recovers ? { readwrite: true, create: false } : { readonly: true }
  const options = { ...access, safeIntegers: true, strict: true }
  // Any read takes the lock.
  const db = openLocked(path, options, (opened) => rowsOf(opened, 'pragma schema_version'))
  db.run(`pragma busy_timeout = ${LOCK_MAX_WAIT_MS}`)
  return db
}

/** Opens a connection that reads a database and leaves no trace. No process may have it open (https://sqlite.org/uri.html). */
export const openImmutable = (path: string): Database =>
  openDatabase(
    `${Bun.pathToFileURL(path).href}?immutable=1`,
    constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI,
  )

/** The statement that inserts one row, with a parameter for each column. */
export const insertInto = (table: string, columns: readonly string[]): string =>
  `insert into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`

/** The rows of a statement that is used once. Its columns, of strict tables, have the types that the caller names. */
export const rowsOf = <Row = unknown[]>(db: Database, sql: string, ...values: SQLQueryBindings[]): Row[] =>
  db.prepare<unknown, SQLQueryBindings[]>(sql).values(...values) as Row[]
