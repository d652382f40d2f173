import { join } from 'node:path'
import type { AppError } from '../../src/domain/error.ts'
import type { Store } from '../../src/domain/store.ts'
import { openStore } from '../../src/store/open.ts'
import type { OpenOptions } from '../../src/store/opening.ts'
import { EXECUTABLE } from './executable.ts'
import { makeFolder } from './folder.ts'

/** An implementation of `Store` for the suites: real databases, each empty and gone after its use. */
export interface StoreUnderTest {
  readonly name: string
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

/** Every implementation there is. The suite of the executable, which has its own, does with one. */
export const STORES: readonly StoreUnderTest[] = EXECUTABLE === undefined ? [here, inThread] : [here]

const failTest = (error: AppError): never => {
  throw error
}
