// Tested in test/cli/transcripts/databases.txt.
import { isPostgresUrl, parsePostgresUrl } from '../database-url.ts'
import { storeUnusable } from '../engine/errors.ts'
import { realPath } from '../engine/sqlite/files/file-system.ts'
import { type AppError, misused } from '../error.ts'
import type { CopyOptions, DatabaseAccess, NamedDatabase, OpenOptions } from './database.ts'
import { postgresDatabase } from './postgres/database.ts'
import { sqliteDatabase } from './sqlite/database.ts'
import type { ContentsOptions, Digest } from './tools/contents.ts'

/** The database that `--database` names: by the path of a SQLite file, or the URL of a PostgreSQL database. */
export function databaseOf(database: string, access: DatabaseAccess = {}): NamedDatabase {
  if (!isPostgresUrl(database)) return sqliteDatabase(realPath(database))
  const address = parsePostgresUrl(database)
  if (typeof address === 'string') throw storeUnusable(`The database must be ${address}.`)
  return postgresDatabase({ ...access, address })
}

/** Opens the store that `--database` names, as `NamedDatabase.open` does. */
export const openStore = async (
  database: string,
  onFailure: (error: AppError) => void,
  options: OpenOptions & DatabaseAccess = {},
) => databaseOf(database, options).open(onFailure, options)

export { joinStore } from './sqlite/store.ts'

interface StoreCopyOptions extends ContentsOptions, CopyOptions {
  /** Called when all is verified, before the other store is published. A signal stops nothing any more. */
  readonly onPublish: () => void
}

/** Copies all users, tokens and plants of a store into another one. Rejects as `CopyTools` and `copyContents` do. */
export async function copyStore(
  source: NamedDatabase,
  target: NamedDatabase,
  options: StoreCopyOptions,
): Promise<Digest> {
  if (source.location === target.location) {
    throw misused('A store cannot be copied to itself: name another one.')
  }
  const { copyContents } = await import('./tools/contents.ts')
  const reader = await source.copyTools(options)
  const writer = await target.copyTools(options)
  return reader.read((contents) =>
    writer.fill(async (filled) => {
      const digest = await copyContents(contents, filled, options)
      options.onPublish()
      return digest
    }),
  )
}
