import type { Contents, Source } from '../../tools/contents.ts'
import { openReader } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { lockAlone } from '../files/lock.ts'
import { contentsOf } from './contents.ts'
import { updateSchema } from './update-schema.ts'

/** `CopyTools.read` for SQLite. Without a snapshot no other process can open the database meanwhile. */
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
