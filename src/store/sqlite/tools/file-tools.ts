import type { FileStatus, FileTools } from '../../engine.ts'
import { openReader } from '../driver.ts'
import { toAppError } from '../errors.ts'
import { sizeOf } from '../files/file-system.ts'
import { isOpenElsewhere } from '../files/lock.ts'
import { databaseEmpty, databaseMissing, inspect } from '../files/preflight.ts'
import { APPLICATION_ID, pragmaNumber, SCHEMA_VERSION } from '../migrate.ts'
import { backups } from './backups.ts'
import { countRows, exportPlants } from './contents.ts'
import { importPlants } from './import.ts'

/** The tools for the SQLite file at this path. */
export const fileTools = (path: string): FileTools => {
  const translated = <Result>(result: Promise<Result>): Promise<Result> =>
    result.catch((error) => {
      throw toAppError(error, path)
    })
  return {
    ...backups(path),
    status: () => translated(status(path)),
    exportPlants: (...options) => translated(exportPlants(path)(...options)),
    importPlants: (...options) => translated(importPlants(path)(...options)),
  }
}

/** See `FileTools.status`. */
async function status(path: string): Promise<FileStatus> {
  if (!inspect(path).exists) throw databaseMissing(path)
  // Before a connection is opened, because the last connection that closes brings the WAL into the database.
  const walBytes = sizeOf(`${path}-wal`)
  const bytes = sizeOf(path)
  if (bytes === 0) throw databaseEmpty(path)
  const isInUse = isOpenElsewhere(path)
  // A connection that may only read would leave side files when it is closed.
  using reader = openReader(path, { recovers: true })
  if (pragmaNumber(reader, 'application_id') !== APPLICATION_ID) throw databaseEmpty(path)
  reader.run('begin')
  const [[engine] = []] = reader.prepare('select sqlite_version()').values()
  return {
    path,
    engine: `SQLite ${engine}`,
    isInUse,
    schema: pragmaNumber(reader, 'user_version'),
    schemaKnown: SCHEMA_VERSION,
    bytes,
    walBytes,
    ...countRows(reader),
  }
}
