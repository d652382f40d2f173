import type { Engine } from '../engine.ts'
import { RESTORE } from '../errors.ts'
import { openSqliteStore } from './store.ts'

/** The SQLite file at this path. */
export const sqliteEngine = (path: string): Engine => ({
  location: path,
  repairAdvice: RESTORE,
  open: (onFailure, options) => openSqliteStore(path, onFailure, options),

  async fileTools() {
    const { fileTools } = await import('./tools/file-tools.ts')
    return fileTools(path)
  },

  async copyTools() {
    const { readSqlite } = await import('./tools/contents.ts')
    const { fillSqlite } = await import('./tools/copy-target.ts')
    return {
      read: (options, use) => readSqlite(path, options, use),
      fill: (fill) => fillSqlite(path, fill),
    }
  },
})
