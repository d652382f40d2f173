import type { Database } from 'bun:sqlite'
import { type HealthMethods, withKnownOutcome } from '../readiness.ts'
import type { Connections } from './connections.ts'
import { isDamage } from './errors.ts'
import { APPLICATION_ID } from './migrate.ts'

/** Whether SQLite can be read and written, and whether what it holds is whole. */
export function health({ reader, read, write }: Connections): HealthMethods {
  const selectOne = reader.prepare('select 1 from users limit 1')

  return {
    async checkReady() {
      await read(() => selectOne.values())
      // Writing what never changes once more writes and syncs a page, and changes nothing.
      await write(['rewriteApplicationId']).catch(withKnownOutcome)
    },

    checkIntegrity: () => read(() => findProblems(reader)),
  }
}

/** Reads a whole database and returns what is wrong with it, a line each. */
export function findProblems(db: Database): readonly string[] {
  try {
    const found = db.prepare('pragma main.integrity_check').values().flat().map(String)
    const orphans = db.prepare('pragma main.foreign_key_check').values()
    return [
      // Several problems of one b-tree are one text.
      ...found.flatMap((text) => text.split('\n')).filter((line) => line !== 'ok'),
      ...orphans.map(([table]) => `a row of ${table} belongs to no user`),
    ]
  } catch (error) {
    // Some damage keeps SQLite from looking any further: that is the answer, too.
    if (error instanceof Error && isDamage(error)) return [error.message]
    throw error
  }
}

/** The write that tells whether one is possible. */
export const healthWrites = (writer: Database) => ({
  rewriteApplicationId: () => void writer.run(`pragma application_id = ${APPLICATION_ID}`),
})
