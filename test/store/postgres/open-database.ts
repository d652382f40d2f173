import type { Store } from '../../../src/domain/store.ts'
import { type OpenOptions, STORE_DEADLINES } from '../../../src/store/database.ts'
import { openStore } from '../../../src/store/open.ts'
import { administer, lockTables, makeDatabase, runScript, untilWaiting } from '../../support/postgres.ts'
import { stretched } from '../../support/slack.ts'
import { createUser } from '../fixtures.ts'

interface DatabaseOptions extends OpenOptions {
  /** Returns the URL that stores are given, for example one that leads to a proxy. */
  readonly by?: (url: string) => string
}

/** Makes a database, and opens a store on it with the user `me`. */
export async function openDatabase({ by = (url) => url, ...options }: DatabaseOptions = {}) {
  const database = await makeDatabase()
  const { url, name, server } = database
  const stores: Store[] = []
  /** Opens one more store on the database. */
  const open = async (): Promise<Store> => {
    const store = await openStore(by(url), failTest, { deadlines: stretched(STORE_DEADLINES), ...options })
    stores.push(store)
    return store
  }
  const store = await open()
  /** Runs SQL beside the store. */
  const run = (script: string) => runScript(url, script)
  /** Ends the connections that wait for a lock. */
  const endWaiting = () =>
    run(`select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`)
  return {
    ...{ url, name, server, store, open, run, endWaiting },
    user: await createUser(store, 'me'),
    /** Runs SQL while a group waits for the table of plants, and then ends its connection. Resolves to the result of the write. */
    async loseConnectionOf<T>(write: () => T, script = 'select'): Promise<Awaited<T>> {
      const lock = await lockTables(url, 'plantstore.plants')
      const result = write()
      await untilWaiting(url, 1)
      await run(script)
      await endWaiting()
      await lock.release()
      return await result
    },
    /** The number that a statement selects. */
    number: (query: string) => administer(url, async (sql) => Number((await sql.unsafe(query).values())[0]?.[0])),
    async [Symbol.asyncDispose]() {
      await Promise.all(stores.map((each) => each.close()))
      await database[Symbol.asyncDispose]()
    },
  }
}

/** For `onFailure` of stores that must not fail. */
export const failTest = (error: unknown): never => {
  throw error
}
