import { statSync } from 'node:fs'
import type { StoreStatistics } from '../../domain/statistics.ts'
import type { Connections } from './connections.ts'

/** The statistics of a SQLite file. */
export const statistics = ({ path, load }: Connections): StoreStatistics => ({
  load,
  sizes: async () => ({ databaseBytes: bytesOf(path), walBytes: bytesOf(`${path}-wal`) }),
})

const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0
