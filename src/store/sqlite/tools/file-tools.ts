// Tested in test/cli/transcripts/status-check.txt.
import type { Database } from 'bun:sqlite'
import { accessSync, constants, createReadStream, fstatSync, openSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { openImmutable, openReader, openWriteConnection } from '../../../engine/sqlite/driver.ts'
import { isOutOfSpace, isUnshared, toEngineError, toOpenError } from '../../../engine/sqlite/errors.ts'
import { findAndMark, markedIfDamaged } from '../../../engine/sqlite/files/damage-mark.ts'
import { realPath, sizeOf } from '../../../engine/sqlite/files/file-system.ts'
import { isOpenElsewhere, removeUnshared } from '../../../engine/sqlite/files/lock.ts'
import {
  databaseEmpty,
  databaseMissing,
  type InspectOptions,
  inspect,
  inspectBackup,
  refuseLeftFiles,
  requireResting,
} from '../../../engine/sqlite/files/preflight.ts'
import { pragmaNumber } from '../../../engine/sqlite/migrate.ts'
import { warnOfObjects } from '../../../engine/sqlite/open.ts'
import { backupIn, keepBackups } from '../../../engine/sqlite/tools/backups.ts'
import { cloneDatabase, withClone } from '../../../engine/sqlite/tools/clone-database.ts'
import { AppError } from '../../../error.ts'
import type { FileStatus, FileTools, OpenOptions } from '../../database.ts'
import { PLANT_FORMAT, SCHEMA_VERSION } from '../format.ts'
import { exportPlants } from './contents.ts'
import { importPlants } from './import.ts'

export const fileTools = (path: string): FileTools => {
  const translated = <Result>(work: () => Promise<Result>): Promise<Result> =>
    work().catch((error) => {
      // The connection is closed, so the file that could not grow may be gone.
      if (isOutOfSpace(error)) throw new AppError('store_full', { cause: error })
      throw markedIfDamaged(toEngineError(error, path), path)
    })
  return {
    backup: (file, options) => translated(async () => cloneDatabase(sourceOf(path), realPath(file), options)),

    backupIn: (directory, nowMs) => backupIn(directory, path, nowMs),

    backupToRead: (options) =>
      translated(async () => {
        const source = sourceOf(path)
        // The disk of the database has room for the clone, but maybe this process must not write there.
        const folder = source.state === undefined ? dirname(path) : tmpdir()
        return withClone(source, join(folder, `${basename(path)}-backup`), options, (clone) => {
          // Nothing asks for the signal after this.
          options.signal?.throwIfAborted()
          // The descriptor outlives the file's name.
          const file = openSync(clone.path, 'r')
          return { ...clone.cloned, bytes: fstatSync(file).size, chunks: createReadStream('', { fd: file }) }
        })
      }),

    async recordBackup(atMs, bytes) {
      accessSync(path, constants.W_OK)
      using writer = openWriteConnection(path, 'full')
      // An older schema has no place for the record.
      if (pragmaNumber(writer, 'user_version') !== SCHEMA_VERSION) return
      writer.run('insert or replace into last_backup (id, at_ms, bytes) values (1, ?1, ?2)', [atMs, bytes])
    },

    keepBackups: (latest, keep) => translated(async () => keepBackups(path, latest, keep)),

    restore: (backup, options) =>
      translated(async () => {
        const file = realPath(backup)
        const { state, foreign } = inspectBackup(file, PLANT_FORMAT)
        // A backup may come from anybody, so the objects of other programs in it are dropped.
        const source = { format: PLANT_FORMAT, role: 'backup', path: file, state, dropped: foreign } as const
        return { ...(await cloneDatabase(source, path, options)), bytes: statSync(file).size }
      }),

    check: (options) =>
      translated(() => read(path, options, async (reader) => findAndMark(reader, path, PLANT_FORMAT))),
    status: (onOtherName) => translated(() => status(path, onOtherName)),
    exportPlants: (...options) => translated(() => read(path, {}, (reader) => exportPlants(reader, path)(...options))),
    importPlants: (...options) => translated(() => importPlants(path)(...options)),
  }
}

function sourceOf(path: string, options: InspectOptions = { isReader: true }) {
  const { exists, foreign, state } = inspect(path, PLANT_FORMAT, options)
  refuseLeftFiles(path)
  if (sizeOf(path) === 0) throw exists ? databaseEmpty(path) : databaseMissing(path)
  return { format: PLANT_FORMAT, role: 'database', path, dropped: foreign, state } as const
}

function openToRead(path: string): Database {
  try {
    // A connection that may only read would leave side files when it is closed.
    return openReader(path, { recovers: true })
  } catch (error) {
    if (isUnshared(error)) removeUnshared(path)
    throw toOpenError(error, path)
  }
}

/** Passes a connection that reads to `use`. The schema may be older. */
async function read<Result>(path: string, options: OpenOptions, use: (reader: Database) => Promise<Result>) {
  warnOfObjects(sourceOf(path, options).dropped, options.onEvent)
  using reader = openToRead(path)
  if (pragmaNumber(reader, 'user_version') === 0) throw databaseEmpty(path)
  return await use(reader)
}

/** See `FileTools.status`. */
async function status(path: string, onOtherName: (problem: string) => void): Promise<FileStatus> {
  const { state } = sourceOf(path, { onOtherName, isReader: true })
  // Before a connection is opened, because the last connection that closes brings the WAL into the database.
  const walBytes = sizeOf(`${path}-wal`)
  const bytes = sizeOf(path)
  const isInUse = isOpenElsewhere(path)
  using reader = state === undefined ? openToRead(path) : openImmutable(path)
  if (pragmaNumber(reader, 'application_id') !== PLANT_FORMAT.applicationId) throw databaseEmpty(path)
  reader.run('begin')
  const counts = PLANT_FORMAT.countRows(reader, 'main')
  requireResting(path, state)
  return {
    path,
    engine: `SQLite ${reader.prepare('select sqlite_version()').values()[0]?.[0]}`,
    isInUse,
    schema: pragmaNumber(reader, 'user_version'),
    schemaKnown: SCHEMA_VERSION,
    bytes,
    walBytes,
    ...counts,
  }
}
