import { join } from 'node:path'
import type { AppError } from '../../src/domain/error.ts'
import { type Store, TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import { openStore } from '../../src/store/open.ts'
import type { OpenOptions } from '../../src/store/options.ts'
import { EXECUTABLE } from './executable.ts'
import { makeFolder } from './folder.ts'
import { borrowDatabase, POSTGRES_SERVER } from './postgres.ts'
import { lacks } from './requirement.ts'

/** An implementation of `Store` for the suites: real databases, each empty and gone after its use. */
export interface StoreUnderTest {
  readonly name: string
  /** Within what time it shows what another process has changed of tokens. */
  readonly tokenChangesSeenWithinMs: number
  /** Opens an empty store. `reopen` opens the same one once more, as another process would. */
  open(): Promise<OpenStore>
}

export interface OpenStore extends AsyncDisposable {
  readonly store: Store
  /** What `--database` names, for another process. */
  readonly database: string
  reopen(): Promise<Store>
}

const sqlite = (name: string, options: OpenOptions): StoreUnderTest => ({
  name,
  tokenChangesSeenWithinMs: 0,
  async open() {
    const folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const opened: Store[] = []
    const reopen = async () => {
      const store = await openStore(database, failTest, options)
      opened.push(store)
      return store
    }
    return {
      store: await reopen(),
      database,
      reopen,
      async [Symbol.asyncDispose]() {
        for (const store of opened) await store.close()
        folder[Symbol.dispose]()
      },
    }
  },
})

const here = sqlite('SQLite', {})
const inThread = sqlite('SQLite, written by a thread', { writesInThread: true })

const postgres = (name: string, options: OpenOptions): StoreUnderTest => ({
  name,
  tokenChangesSeenWithinMs: TOKEN_CHANGES_SEEN_WITHIN_MS,
  async open() {
    const database = await borrowDatabase()
    const opened: Store[] = []
    const reopen = async () => {
      const store = await openStore(database.url, failTest, options)
      opened.push(store)
      return store
    }
    return {
      store: await reopen(),
      database: database.url,
      reopen,
      async [Symbol.asyncDispose]() {
        for (const store of opened) await store.close()
        await database[Symbol.asyncDispose]()
      },
    }
  },
})

/** Those on a PostgreSQL server: none where it is skipped, as a test of its own says. */
export const POSTGRES_STORES: readonly StoreUnderTest[] = lacks(POSTGRES_SERVER)
  ? []
  : [postgres('PostgreSQL', { writesInThread: true })]

/** Those on SQLite. */
export const SQLITE_STORES: readonly StoreUnderTest[] = EXECUTABLE === undefined ? [here, inThread] : [here]

/** Every implementation there is. The suite of the executable, which has its own, does with one of each. */
export const STORES: readonly StoreUnderTest[] = [...SQLITE_STORES, ...POSTGRES_STORES]

const failTest = (error: AppError): never => {
  throw error
}
