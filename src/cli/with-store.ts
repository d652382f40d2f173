import type { Store } from '../domain/store.ts'
import { openStore } from '../store/open.ts'
import type { OpenOptions } from '../store/opening.ts'

/**
 * Opens the store for one task and closes it after. A failure of the store is the task's own failure. A store that
 * is not there is most likely a mistake in its name, and not made unless the options say so.
 */
export async function withStore<T>(
  database: string,
  task: (store: Store) => Promise<T>,
  options: OpenOptions = { mustExist: true },
): Promise<T> {
  const store = await openStore(database, () => {}, options)
  try {
    return await task(store)
  } finally {
    await store.close()
  }
}
