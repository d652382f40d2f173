import { join } from 'node:path'
import { OTHERS_SEEN_WITHIN_MS, type Store, TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import type { AppError } from '../../src/error.ts'
import { type OpenOptions, STORE_DEADLINES } from '../../src/store/database.ts'
import { openStore } from '../../src/store/open.ts'
import { makeFolder } from './folder.ts'
import { borrowDatabase, POSTGRES_SERVER } from './postgres.ts'
import { lacks } from './requirement.ts'
import { stretched } from './slack.ts'

interface StoreOptions extends OpenOptions {
  /** Makes an empty database. */
  readonly makeDatabase: () => Promise<{ readonly url: string } & AsyncDisposable>
  /** Within this time the versions of the store show what another process has changed. */
  readonly othersSeenWithinMs: number
  /** A failure fails the test if left out. */
  readonly onFailure?: (error: AppError) => void
}

/** The suites are not about deadlines. */
const DEADLINES = stretched(STORE_DEADLINES)

/** An implementation of `Store` for the suites: real databases, each empty and gone after its use. */
export type StoreUnderTest = ReturnType<typeof storeUnderTest>
export type OpenStore = Awaited<ReturnType<StoreUnderTest['open']>>

const storeUnderTest = (
  name: string,
  { makeDatabase, othersSeenWithinMs, onFailure = failTest, ...options }: StoreOptions,
) => ({
  name,
  othersSeenWithinMs,
  /** Opens an empty store. */
  async open(wanted: Pick<OpenOptions, 'monotonicMs' | 'quotaPlants' | 'deadlines'> = {}) {
    const database = await makeDatabase()
    const opened: Store[] = []
    /** Opens the same store once more, as another process would, maybe with another quota or an identity provider. */
    const reopen = async (other: Pick<OpenOptions, 'quotaPlants'> = {}): Promise<Store> => {
      const store = await openStore(database.url, onFailure, { deadlines: DEADLINES, ...options, ...wanted, ...other })
      opened.push(store)
      return store
    }
    return {
      store: await reopen(),
      /** What `--database` names, for another process. */
      database: database.url,
      reopen,
      async [Symbol.asyncDispose]() {
        for (const store of opened) await store.close()
        await database[Symbol.asyncDispose]()
      },
    }
  },
})

async function makeFile() {
  const folder = makeFolder()
  return {
    url: join(folder.path, 'plantstore.db'),
    [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
  }
}

const SQLITE = { makeDatabase: makeFile, othersSeenWithinMs: OTHERS_SEEN_WITHIN_MS }

/** The two ways to write to SQLite. */
export const SQLITE_STORES: readonly StoreUnderTest[] = [
  storeUnderTest('SQLite', SQLITE),
  storeUnderTest('SQLite, written by a thread', { ...SQLITE, isServer: true }),
]

/** PostgreSQL, unless this machine lacks a server. */
export const POSTGRES_STORES: readonly StoreUnderTest[] = lacks(POSTGRES_SERVER)
  ? []
  : [
      storeUnderTest('PostgreSQL', {
        makeDatabase: borrowDatabase,
        othersSeenWithinMs: TOKEN_CHANGES_SEEN_WITHIN_MS,
        isServer: true,
      }),
    ]

/** SQLite for tests in which the store may fail. */
export const FAILING_STORE = storeUnderTest('SQLite', { ...SQLITE, onFailure() {} })

function failTest(error: AppError): never {
  throw error
}
