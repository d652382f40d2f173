import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { describeAddress, isPostgresUrl, type PostgresAddress, parsePostgresUrl } from '../domain/database-url.ts'
import { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'
import type { ConflictRule, Transfer } from '../domain/transfer.ts'
import type { Digest, Source, Target } from './contents.ts'
import { type ContentsOptions, copyContents } from './copy-contents.ts'
import { storeUnusable } from './errors.ts'
import type { Copied, CopyOptions, ReadableBackup, Restored, StoreStatus } from './file-tools.ts'
import type { OpenOptions } from './options.ts'
import type { ConnectionOptions } from './postgres/connection.ts'
import { filesOpenToOthers } from './sqlite/files/preflight.ts'
import { openSqliteStore } from './sqlite/store.ts'
import { backupSqlite, backupSqliteToRead } from './sqlite/tools/backup.ts'
import { backupSqliteInto, type Kept, keepLatestBackups } from './sqlite/tools/backup-folder.ts'
import { readSqlite } from './sqlite/tools/copy-source.ts'
import { fillSqlite } from './sqlite/tools/copy-target.ts'
import { restoreSqlite } from './sqlite/tools/restore.ts'
import { openStagingTable, type StagingTable } from './sqlite/tools/staging-table.ts'
import { sqliteStatus } from './sqlite/tools/status.ts'
import { sqliteTransfer } from './sqlite/tools/transfer.ts'

/**
 * Opens the store that `--database` names: the path of a SQLite file, or the URL of a database on a PostgreSQL server.
 * Rejects with `store_unusable`. `onFailure` is told once if the store fails later so that it must not be written to any
 * more.
 */
export async function openStore(
  database: string,
  onFailure: (error: AppError) => void,
  options: OpenOptions = {},
): Promise<Store> {
  if (!isPostgresUrl(database)) return openSqliteStore(realPath(database), onFailure, options)
  // With its driver, which nobody else waits for.
  const { openPostgresStore } = await import('./postgres/store.ts')
  return openPostgresStore(addressOf(database), onFailure, options)
}

/** Where that store is, as messages name it: an absolute path, or a URL without its password. */
export const locate = (database: string): string =>
  isPostgresUrl(database) ? describeAddress(addressOf(database)) : realPath(database)

/** The files of that store which others than their own user may read or write: all plants and the hashes of tokens are in them. */
export const exposedFiles = (database: string): string[] =>
  isPostgresUrl(database) ? [] : filesOpenToOthers(realPath(database))

/** Makes a backup of that store as a file. Rejects as `backupSqlite` does; with `misused` for a store that is no file. */
export const backupStore = async (database: string, file: string, options: CopyOptions): Promise<Copied> =>
  backupSqlite(fileOf(database), realPath(file), options)

/** Makes a backup of that store to be read once, as `backupSqliteToRead` does. */
export const backupStoreToRead = async (database: string, options: CopyOptions): Promise<ReadableBackup> =>
  backupSqliteToRead(fileOf(database), options)

/** Makes a backup of that store in a directory, as `backupSqliteInto` does. */
export const backupStoreInto = async (
  database: string,
  directory: string,
  options: Parameters<typeof backupSqliteInto>[2],
): ReturnType<typeof backupSqliteInto> => backupSqliteInto(fileOf(database), realPath(directory), options)

/** Deletes old backups of that store, as `keepLatestBackups` does. */
export const keepStoreBackups = (database: string, latest: string, keep: number): Kept =>
  keepLatestBackups(fileOf(database), latest, keep)

/** Makes a backup that store. Rejects as `restoreSqlite` does; with `misused` for a store that is no file. */
export const restoreStore = async (file: string, database: string, options: CopyOptions): Promise<Restored> =>
  restoreSqlite(realPath(file), fileOf(database), options)

/** Opens that store for what is done with plants in bulk. Rejects as `openStore` does. */
export async function openTransfer(database: string, nowMs: () => number): Promise<Transfer> {
  const path = fileOf(database)
  // Whatever refuses a store, or brings it up to date, does so here as well.
  await (await openSqliteStore(path, () => {}, { mustExist: true })).close()
  return sqliteTransfer(path, nowMs)
}

/** A store by what `--database` would name, and a file with its password if it has one. */
export interface Place {
  readonly database: string
  readonly passwordFile: string | undefined
}

/**
 * Copies all users, tokens and plants of a store into another one, which is empty, is not there yet, or is a copy that was
 * not finished. Rejects with `store_unusable` where a process has one of them open, the first without `isSnapshot` only; and
 * as `copyContents` does. Stopped at whatever moment, it leaves the other as it was, finished, or refused by every use.
 */
export async function copyStore(
  from: Place,
  to: Place,
  options: ContentsOptions & Required<Pick<OpenOptions, 'onEvent'>> & { readonly isSnapshot: boolean },
): Promise<Digest> {
  if (locate(from.database) === locate(to.database)) {
    throw new AppError('misused', { message: 'A store cannot be copied to itself: name another one.' })
  }
  const { plainTextWarning } = await import('./postgres/store.ts')
  const { readPostgres } = await import('./postgres/tools/copy-source.ts')
  const { fillPostgres } = await import('./postgres/tools/copy-target.ts')
  for (const { database } of [from, to]) {
    const event = isPostgresUrl(database) ? plainTextWarning(addressOf(database)) : undefined
    if (event !== undefined) options.onEvent(event)
  }
  const copyInto = (target: Place) => (source: Source) => {
    const fill = (filled: Target) => copyContents(source, filled, options)
    return isPostgresUrl(target.database)
      ? fillPostgres(connectionOf(target), fill)
      : fillSqlite(realPath(target.database), fill)
  }
  return isPostgresUrl(from.database)
    ? readPostgres(connectionOf(from), options, copyInto(to))
    : readSqlite(realPath(from.database), options, copyInto(to))
}

/** A place for plants on their way into that store: its own disk, which has room for them if any has. */
export const openStagingTableFor = (database: string, rule: ConflictRule): StagingTable =>
  openStagingTable(dirname(fileOf(database)), rule)

/** Looks at that store without changing anything. Rejects as `sqliteStatus` does. */
export const statusOfStore = async (database: string, nowMs: number): Promise<StoreStatus> =>
  sqliteStatus(fileOf(database), nowMs)

/** Statements that are sent a few times each need not be prepared. */
const connectionOf = ({ database, passwordFile }: Place): ConnectionOptions => ({
  address: addressOf(database),
  passwordFile,
  prepares: false,
})

function addressOf(database: string): PostgresAddress {
  const address = parsePostgresUrl(database)
  if (typeof address === 'string') throw storeUnusable(`The database must be ${address}.`)
  return address
}

function fileOf(database: string): string {
  if (!isPostgresUrl(database)) return realPath(database)
  throw new AppError('misused', {
    message: 'This is for a database in a file: one of PostgreSQL is kept by its own tools, pg_dump and pg_restore.',
  })
}

/**
 * SQLite puts its other files beside the file itself, not beside a link to it. What is no file stays as it was named, for
 * whoever refuses it: what a link to a pipe says, like /dev/stdout, is no path, and a file of that name would be made.
 */
function realPath(path: string): string {
  if (!existsSync(path)) return resolve(path)
  const found = statSync(path)
  return found.isFile() || found.isDirectory() ? realpathSync(path) : resolve(path)
}
