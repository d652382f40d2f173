import { join } from 'node:path'
import type { AppError } from '../../src/domain/error.ts'
import type { Store } from '../../src/domain/store.ts'
import { openStore } from '../../src/store/open.ts'
import { makeFolder } from './folder.ts'

/** An implementation of `Store` for the suites: real databases, each empty and gone after its use. */
export interface StoreUnderTest {
  readonly name: string
  /** Opens an empty store. `reopen` opens the same one once more, as another process would. */
  open(): Promise<OpenStore>
}

export interface OpenStore extends AsyncDisposable {
  readonly store: Store
  reopen(): Promise<Store>
}

const sqlite: StoreUnderTest = {
  name: 'SQLite',
  async open() {
    const folder = makeFolder()
    const path = join(folder.path, 'plantstore.db')
    const opened: Store[] = []
    const reopen = async () => {
      const store = await openStore(path, failTest)
      opened.push(store)
      return store
    }
    return {
      store: await reopen(),
      reopen,
      async [Symbol.asyncDispose]() {
        for (const store of opened) await store.close()
        folder[Symbol.dispose]()
      },
    }
  },
}

/** Every implementation there is. */
export const STORES: readonly StoreUnderTest[] = [sqlite]

const failTest = (error: AppError): never => {
  throw error
}
