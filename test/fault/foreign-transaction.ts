import { Database } from 'bun:sqlite'

/** Holds a transaction on a database, as another program than the server. `statements` begin the transaction. */
export async function holdTransaction(database: string, ...statements: readonly string[]) {
  const db = new Database(database, { readwrite: true })
  db.run('pragma busy_timeout = 20000')
  for (const statement of statements) db.run(statement)
  return {
    /** Ends the transaction. Rejects if it was not held until now. */
    async release(): Promise<void> {
      db.run('rollback')
      db.close(true)
    },
    [Symbol.asyncDispose]: async () => db.close(),
  }
}
