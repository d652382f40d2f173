import type { Store } from '../../../src/domain/store.ts'
import type { OpenOptions } from '../../../src/store/engine.ts'
import { openStore } from '../../../src/store/open.ts'
import { administer, makeDatabase } from '../../support/postgres.ts'
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
    const store = await openStore(by(url), failTest, options)
    stores.push(store)
    return store
  }
  const store = await open()
  return {
    ...{ url, name, server, store, open },
    user: await createUser(store, 'me'),
    /** Runs SQL beside the store. */
    run: (script: string) => administer(url, async (sql) => void (await sql.unsafe(script).simple())),
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
