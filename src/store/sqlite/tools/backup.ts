import { closeSync, existsSync, fstatSync, readSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { AppError } from '../../../domain/error.ts'
import { storeUnusable } from '../../errors.ts'
import type { Copied, CopyOptions } from '../../file-tools.ts'
import { fileIdentity } from '../files/file-identity.ts'
import { lockAlone } from '../files/lock.ts'
import { removeLeftovers, SIDE_FILES } from '../files/partial-files.ts'
import { inspect } from '../files/preflight.ts'
import { copyDatabase } from './copy-database.ts'

/**
 * Makes a backup of a database as it is at one moment, while other processes may write. The file gets its name once it is
 * verified and on disk. Rejects with `store_unusable` for the database, and with `file_unusable` for the backup.
 */
export async function backupSqlite(database: string, target: string, options: CopyOptions = {}): Promise<Copied> {
  requireDatabase(database)
  refuseTarget(database, target, options)
  removeLeftovers(dirname(target), (name) => name === basename(target))
  using copy = await copyDatabase('database', database, target, options)
  if (options.force === true && existsSync(target)) {
    lockAlone(target).release()
    copy.replace()
  } else {
    copy.placeNew(targetExists(target))
  }
  return { ...copy.counts, path: target, bytes: statSync(target).size }
}

/** The size of one read of a backup. */
const CHUNK_BYTES = 1024 * 1024

/**
 * Makes and verifies a backup that can be read once. It is on the disk of the database, which has room for it, and has no name,
 * so nothing of it is left when the process ends. Rejects as `backupSqlite` does.
 */
export async function backupSqliteToRead(database: string, options: CopyOptions = {}) {
  requireDatabase(database)
  const target = `${database}-backup`
  removeLeftovers(dirname(target), (name) => name === basename(target))
  using copy = await copyDatabase('database', database, target, options)
  // Nothing asks for the signal after this.
  options.signal?.throwIfAborted()
  const file = copy.open()
  return { ...copy.counts, bytes: fstatSync(file).size, chunks: readChunks(file) }
}

function* readChunks(file: number): Generator<Uint8Array> {
  try {
    for (;;) {
      const chunk = new Uint8Array(CHUNK_BYTES)
      const bytes = readSync(file, chunk)
      if (bytes === 0) return
      yield chunk.subarray(0, bytes)
    }
  } finally {
    closeSync(file)
  }
}

function requireDatabase(path: string): void {
  if (!inspect(path)) throw storeUnusable(`There is no database ${path}: name the one that the server uses.`)
}

function refuseTarget(database: string, target: string, { force = false }: CopyOptions): void {
  const directory = dirname(target)
  refuseDirectory(directory)
  if (!existsSync(target)) {
    // SQLite would take the file for a part of the backup.
    const [beside] = SIDE_FILES.map((name) => target + name).filter((path) => existsSync(path))
    if (beside !== undefined) throw fileUnusable(`${beside} is there without its database: move it away.`)
    return
  }
  if (['', ...SIDE_FILES].some((name) => fileIdentity(database + name) === fileIdentity(target))) {
    throw fileUnusable(`${target} is the database itself: name another file.`)
  }
  if (!statSync(target).isFile()) throw fileUnusable(`${target} is not a regular file: name another one.`)
  if (!force) throw targetExists(target)
  try {
    inspect(target)
  } catch (cause) {
    throw fileUnusable(`${target} is no backup, and stays as it is: name another file.`, cause)
  }
}

/** Throws `file_unusable` unless backups can be made in this directory. */
export function refuseDirectory(directory: string): void {
  const found = statSync(directory, { throwIfNoEntry: false })
  if (found === undefined) throw fileUnusable(`There is no directory ${directory}: create it.`)
  if (!found.isDirectory()) throw fileUnusable(`${directory} is not a directory: name one.`)
}

const targetExists = (target: string) =>
  fileUnusable(`${target} is there already: name another file, or repeat it with --force.`)

const fileUnusable = (message: string, cause?: unknown) => new AppError('file_unusable', { message, cause })
