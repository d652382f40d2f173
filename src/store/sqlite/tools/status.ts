import { statSync } from 'node:fs'
import type { FileStatus } from '../../engine.ts'
import { openReader } from '../driver.ts'
import { isOpenElsewhere } from '../files/lock.ts'
import { databaseEmpty, databaseMissing, inspect } from '../files/preflight.ts'
import { APPLICATION_ID, pragmaNumber, SCHEMA_VERSION } from '../migrate.ts'
import { countRows } from './contents.ts'

/** See `FileTools.status`. */
export async function sqliteStatus(path: string): Promise<FileStatus> {
  if (!inspect(path).exists) throw databaseMissing(path)
  // Before a connection is opened, because the last connection that closes brings the WAL into the database.
  const walBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  const bytes = statSync(path).size
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
