import { constants, type Database } from 'bun:sqlite'
import { openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError } from '../../../domain/error.ts'
import { type FileRole, fileDamaged, storeUnusable } from '../../errors.ts'
import type { CopyOptions, Counts } from '../../file-tools.ts'
import { isDamage, isLocked, isOutOfSpace } from '../errors.ts'
import { fileIdentity } from '../files/file-identity.ts'
import { createFile, renameToNew } from '../files/new-file.ts'
import { partialPath, syncDirectory } from '../files/partial-files.ts'
import { refuseChangedSchema } from '../files/schema.ts'
import { findProblems } from '../health.ts'
import { pragmaNumber } from '../migrate.ts'
import { copyRows, countRows } from './copy-rows.ts'
import { openUnfinished } from './unfinished-database.ts'

/** How SQLite opens the source: other processes use a database, and nobody writes to a backup (https://sqlite.org/uri.html). */
const ACCESS: Readonly<Record<FileRole, string>> = { database: 'mode=rw', backup: 'immutable=1' }

/**
 * Copies a database, as it is at one moment, to a new file beside `target`, and verifies the copy. Rejects with
 * `store_unusable` if the source is damaged, and with `file_unusable` if the copy cannot be made. Then nothing of it is left.
 *
 * It does not use `vacuum into`, which does not sync its file, cannot be stopped, and does not say how many rows it has read.
 */
export async function copyDatabase(role: FileRole, source: string, target: string, options: CopyOptions = {}) {
  const partial = partialPath(target)
  let copy: Database | undefined
  let isPlaced = false
  let identity: string | undefined
  const requireOurs = () => {
    if (fileIdentity(partial) !== identity) throw cannotMake(target, 'somebody has taken it away meanwhile')
  }
  const place = (rename: () => void) => {
    requireOurs()
    rename()
    isPlaced = true
    syncDirectory(dirname(target))
  }
  const discard = () => {
    copy?.close(true)
    if (!isPlaced) rmSync(partial, { force: true })
  }
  try {
    createFile(partial, options.force === true ? target : undefined)
    identity = fileIdentity(partial)
    copy = openUnfinished(partial, constants.SQLITE_OPEN_READWRITE | constants.SQLITE_OPEN_URI)
    copy.run('attach ?1 as source', [`${Bun.pathToFileURL(source).href}?${ACCESS[role]}`])
    const { expected, dropped } = await copyRows(copy, role, source, options)
    copy.run('detach source')
    const counts = verify(copy, role, source, expected)
    return {
      counts,
      /** The objects of the source that were not copied. */
      dropped,
      /** Renames the copy to `target`, durably. It replaces a file of that name. */
      replace: () => place(() => renameSync(partial, target)),
      /** Renames the copy to `target`, durably. Throws `exists` if there is a file of that name. */
      placeNew: (exists: AppError) =>
        place(() => {
          if (!renameToNew(partial, target)) throw exists
        }),
      /** Opens the copy for reading. The descriptor outlives the copy's name. */
      open(): number {
        requireOurs()
        return openSync(partial, 'r')
      },
      /** Closes the copy, and deletes it unless it was renamed to `target`. */
      [Symbol.dispose]: discard,
    }
  } catch (error) {
    discard()
    throw toCopyError(error, role, source, target)
  }
}

/** Throws if the file is damaged or lacks a row. */
function verify(copy: Database, role: FileRole, source: string, expected: Counts): Counts {
  // Read the file itself, and not the cache.
  copy.run('pragma shrink_memory')
  const problems = findProblems(copy)
  if (problems.length > 0) throw damaged(role, source, problems)
  refuseChangedSchema(role, source, copy, pragmaNumber(copy, 'user_version'))
  const counts = countRows(copy, 'main')
  if (!Bun.deepEquals(counts, expected)) {
    throw new Error(`of ${JSON.stringify(expected)} rows the copy has ${JSON.stringify(counts)}`)
  }
  return counts
}

function toCopyError(error: unknown, role: FileRole, source: string, target: string): unknown {
  if (error instanceof AppError) return error
  if (isDamage(error)) return damaged(role, source, [String(error)])
  if (isLocked(error)) return storeUnusable(`The database ${source} is locked by another process: try again.`, error)
  if (isOutOfSpace(error)) return cannotMake(target, 'there is no space: make room', error)
  const isSystemError = error instanceof Error && 'code' in error
  return isSystemError ? cannotMake(target, error.message, error) : error
}

const damaged = (role: FileRole, source: string, problems: readonly string[]) =>
  fileDamaged(role, source, `is damaged: ${problems.join('; ')}`)

const cannotMake = (target: string, reason: string, cause?: unknown) =>
  new AppError('file_unusable', { message: `${target} cannot be made: ${reason}.`, cause })
