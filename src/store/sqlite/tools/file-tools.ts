import type { FileTools } from '../../engine.ts'
import { toAppError } from '../errors.ts'
import { backups } from './backups.ts'
import { exportPlants } from './contents.ts'
import { importPlants } from './import.ts'
import { sqliteStatus } from './status.ts'

/** The tools for the SQLite file at this path. */
export const fileTools = (path: string): FileTools => {
  const translated = <Result>(result: Promise<Result>): Promise<Result> =>
    result.catch((error) => {
      throw toAppError(error, path)
    })
  return {
    ...backups(path),
    status: () => translated(sqliteStatus(path)),
    exportPlants: (userName, use) => translated(exportPlants(path, userName, use)),
    importPlants: (rule, clocks, use) => translated(importPlants(path, rule, clocks, use)),
  }
}
