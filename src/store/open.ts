import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'
import type { OpenOptions } from './opening.ts'
import { filesOpenToOthers } from './sqlite/inspect.ts'
import { openSqliteStore } from './sqlite/store.ts'

/**
 * Opens the store that `--database` names: the path of a SQLite file. Rejects with `store_unusable`. `onFailure` is told
 * once if the store fails later so that it must not be written to any more.
 */
export const openStore = (
  database: string,
  onFailure: (error: AppError) => void,
  options: OpenOptions = {},
): Promise<Store> => openSqliteStore(realPath(database), onFailure, options)

/** The files of that store which others than their own user may read or write: all plants and the hashes of tokens are in them. */
export const exposedFiles = (database: string): string[] => filesOpenToOthers(realPath(database))

/** SQLite puts its other files beside the file itself, not beside a link to it. */
const realPath = (path: string): string => (existsSync(path) ? realpathSync(path) : resolve(path))
