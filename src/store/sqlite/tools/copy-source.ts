import type { Contents, Source } from '../../tools/contents.ts'
import { openReader } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { lockAlone } from '../files/lock.ts'
import { contentsOf } from './contents.ts'
import { updateSchema } from './update-schema.ts'

/**
 * Opens a database to copy from. With a snapshot other processes may write to the database, and the copy lacks their writes.
 * Without a snapshot no other process can open the database meanwhile. Then it rejects with `store_unusable` if another process
 * has the database open, even if that process is idle.
 */
export async function readSqlite<T>(
  path: string,
  { isSnapshot }: { readonly isSnapshot: boolean },
  use: (source: Source) => Promise<T>,
): Promise<T> {
  await updateSchema(path)
  using opened = isSnapshot ? openSnapshot(path) : lockAlone(path, 'end it, or use --snapshot')
  let contents: Contents
  try {
    contents = contentsOf(opened.db, path)
  } catch (error) {
    throw toAppError(error, { duringWrite: false, path })
  }
  return await use(contents)
}

function openSnapshot(path: string) {
  const db = openReader(path)
  return { db, [Symbol.dispose]: () => db.close(true) }
}
