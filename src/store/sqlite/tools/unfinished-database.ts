import type { Database } from 'bun:sqlite'
import { BUSY_TIMEOUT_MS, openDatabase } from '../connection.ts'

/**
 * Opens a new database file and locks it until it is closed, so that other processes know that it is being made. It needs no
 * journal on disk, because an unfinished file is deleted. Commits are synced.
 */
export function openUnfinished(path: string, options: Parameters<typeof openDatabase>[1]): Database {
  const db = openDatabase(path, options)
  db.run(`pragma busy_timeout = ${BUSY_TIMEOUT_MS}`)
  // Only the main database: a database that is attached later keeps its own modes.
  db.run('pragma main.locking_mode = exclusive')
  db.run('pragma main.journal_mode = memory')
  db.run('pragma main.synchronous = full')
  db.run('pragma fullfsync = 1')
  return db
}
