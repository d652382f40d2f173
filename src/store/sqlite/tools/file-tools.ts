import type { FileTools } from '../../engine.ts'
import { toAppError } from '../errors.ts'
import { backup, backupIn, backupToRead, keepLatestBackups, recordBackup, restore } from './backup.ts'
import { exportPlants } from './contents.ts'
import { importPlants } from './import.ts'
import { sqliteStatus } from './status.ts'

/** The tools for the SQLite file at this path. All but `recordBackup` translate SQLite's errors. */
export const fileTools = (path: string): FileTools => {
  const tool =
    <Arguments extends unknown[], Result>(run: (path: string, ...args: Arguments) => Promise<Result>) =>
    async (...args: Arguments): Promise<Result> => {
      try {
        return await run(path, ...args)
      } catch (error) {
        throw toAppError(error, path)
      }
    }
  return {
    backup: tool(backup),
    backupToRead: tool(backupToRead),
    restore: tool(restore),
    status: tool(sqliteStatus),
    exportPlants: tool(exportPlants),
    importPlants: tool(importPlants),
    backupIn: backupIn.bind(null, path),
    recordBackup: recordBackup.bind(null, path),
    keepBackups: keepLatestBackups.bind(null, path),
  }
}
