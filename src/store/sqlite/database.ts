// Tested in test/cli/transcripts/databases.txt.
import { type NamedDatabase, RESTORE } from '../database.ts'
import { openSqliteStore } from './store.ts'

const loadTools = async (path: string) => (await import('./tools/file-tools.ts')).fileTools(path)

export const sqliteDatabase = (path: string): NamedDatabase => ({
  location: path,
  repairAdvice: RESTORE,
  open: (onFailure, options) => openSqliteStore(path, onFailure, options),

  check: async (options) => (await loadTools(path)).check(options),
  fileTools: () => loadTools(path),

  async copyTools({ isSnapshot = false }) {
    const { fillSqlite, readSqlite } = await import('./tools/copy.ts')
    return { read: (use) => readSqlite(path, isSnapshot, use), fill: (fill) => fillSqlite(path, fill) }
  },
})
