import type { Source } from '../../tools/contents.ts'
import { openReader } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { lockAlone } from '../files/lock.ts'
import { openSqliteStore } from '../store.ts'
import { contentsOf } from './contents.ts'

/**
 * Opens a database to copy from. With a snapshot others may go on to write, which is not seen. Without one nobody else can
 * open it meanwhile, and it rejects with `store_unusable` where a process has it open, be it idle; and as the store does.
 */
export async function readSqlite<T>(
  path: string,
  { isSnapshot }: { readonly isSnapshot: boolean },
  use: (source: Source) => Promise<T>,
): Promise<T> {
  // Whatever refuses a store, or brings it up to date, does so here as well.
  await (await openSqliteStore(path, () => {}, { mustExist: true })).close()
  using opened = isSnapshot ? openSnapshot(path) : lockAlone(path, 'end it, or use --snapshot')
  return await use(begin(opened.db, path))
}

function begin(db: Parameters<typeof contentsOf>[0], path: string) {
  try {
    return contentsOf(db, path)
  } catch (error) {
    throw toAppError(error, { duringWrite: false, path })
  }
}

function openSnapshot(path: string) {
  const db = openReader(path)
  return { db, [Symbol.dispose]: () => db.close(true) }
}
