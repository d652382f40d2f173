import { isPostgresUrl, parsePostgresUrl } from '../domain/database-url.ts'
import { type AppError, misused } from '../domain/error.ts'
import { realPath } from '../engine/sqlite/files/file-system.ts'
import type { CopyOptions, DatabaseAccess, Engine, OpenOptions } from './engine.ts'
import { storeUnusable } from './errors.ts'
import { postgresEngine } from './postgres/engine.ts'
import { sqliteEngine } from './sqlite/engine.ts'
import type { ContentsOptions, Digest } from './tools/contents.ts'

/** The engine of the database that `--database` names: the path of a SQLite file, or the URL of a PostgreSQL database. */
export function engineOf(database: string, access: DatabaseAccess = {}): Engine {
  if (!isPostgresUrl(database)) return sqliteEngine(realPath(database))
  const address = parsePostgresUrl(database)
  if (typeof address === 'string') throw storeUnusable(`The database must be ${address}.`)
  return postgresEngine({ ...access, address })
}

/** Opens the store that `--database` names, as `Engine.open` does. */
export const openStore = async (
  database: string,
  onFailure: (error: AppError) => void,
  options: OpenOptions & DatabaseAccess = {},
) => engineOf(database, options).open(onFailure, options)

export { joinStore } from './sqlite/store.ts'

interface StoreCopyOptions extends ContentsOptions, CopyOptions {
  /** Called when all is verified, before the other store is published. A signal stops nothing any more. */
  readonly onPublish: () => void
}

/** Copies all users, tokens and plants of a store into another one. Rejects as `CopyTools` and `copyContents` do. */
export async function copyStore(source: Engine, target: Engine, options: StoreCopyOptions): Promise<Digest> {
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
