import { dirname } from 'node:path'
import type { FileTools } from '../../file-tools.ts'
import { realPath } from '../files/real-path.ts'
import { backupSqlite, backupSqliteToRead } from './backup.ts'
import { backupSqliteInto, keepLatestBackups } from './backup-folder.ts'
import { exportPlants } from './export.ts'
import { openImport } from './import.ts'
import { restoreSqlite } from './restore.ts'
import { openStagingTable } from './staging-table.ts'
import { sqliteStatus } from './status.ts'
import { updateSchema } from './update-schema.ts'

/** The tools for the SQLite file at this path. */
export const fileTools = (path: string): FileTools => ({
  backup: async (file, options) => backupSqlite(path, realPath(file), options),
  backupInto: async (directory, options) => backupSqliteInto(path, realPath(directory), options),
  backupToRead: (options) => backupSqliteToRead(path, options),
  keepBackups: (latest, keep) => keepLatestBackups(path, latest, keep),
  restore: async (backup, options) => restoreSqlite(realPath(backup), path, options),
  status: (nowMs) => sqliteStatus(path, nowMs),

  async exportPlants(userName) {
    await updateSchema(path)
    return exportPlants(path, userName)
  },

  async openImport(nowMs) {
    await updateSchema(path)
    return openImport(path, nowMs)
  },

  // The disk of the database has room for the plants if any disk has.
  openStagingTable: (rule) => openStagingTable(dirname(path), rule),
})
