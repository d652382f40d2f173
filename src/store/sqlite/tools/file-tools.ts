import { join } from 'node:path'
import type { ConflictRule } from '../../../domain/plant.ts'
import type { CloneOptions } from '../../engine.ts'
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
export const fileTools = (path: string) => ({
  backup: async (file: string, options: CloneOptions) => backupSqlite(path, realPath(file), options),
  /** The path of a backup in a directory. Its name has the time. */
  backupIn: (directory: string, nowMs: number) => join(directory, backupName(path, nowMs)),
  backupToRead: (options: CloneOptions) => backupSqliteToRead(path, options),
  recordBackup: (atMs: number, bytes: number) => recordBackup(path, atMs, bytes),
  keepBackups: (latest: string, keep: number) => keepLatestBackups(path, latest, keep),
  restore: async (backup: string, options: CloneOptions) => restoreSqlite(realPath(backup), path, options),
  status: () => sqliteStatus(path),

  exportPlants: (userName: string | undefined, use: Parameters<typeof exportPlants>[2]) =>
    exportPlants(path, userName, use),
  openImport: (rule: ConflictRule, clocks: Parameters<typeof openImport>[2]) => openImport(path, rule, clocks),
})
