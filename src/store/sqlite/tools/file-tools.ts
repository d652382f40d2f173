import { join } from 'node:path'
import type { FileTools } from '../../engine.ts'
import { realPath } from '../files/file-system.ts'
import {
  backupName,
  backupSqlite,
  backupSqliteToRead,
  keepLatestBackups,
  recordBackup,
  restoreSqlite,
} from './backup.ts'
import { exportPlants } from './contents.ts'
import { openImport } from './import.ts'
import { sqliteStatus } from './status.ts'

/** The tools for the SQLite file at this path. */
export const fileTools = (path: string): FileTools => ({
  backup: async (file, options) => backupSqlite(path, realPath(file), options),
  backupIn: (directory, nowMs) => join(directory, backupName(path, nowMs)),
  backupToRead: (options) => backupSqliteToRead(path, options),
  recordBackup: (atMs, bytes) => recordBackup(path, atMs, bytes),
  keepBackups: (latest, keep) => keepLatestBackups(path, latest, keep),
  restore: async (backup, options) => restoreSqlite(realPath(backup), path, options),
  status: () => sqliteStatus(path),
  exportPlants: (userName, use) => exportPlants(path, userName, use),
  openImport: (rule, clocks) => openImport(path, rule, clocks),
})
