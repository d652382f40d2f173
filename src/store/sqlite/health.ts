import type { Database } from 'bun:sqlite'
import type { Store } from '../../domain/store.ts'
import { withKnownOutcome } from '../errors.ts'
import type { Connections } from './connections.ts'
import { isDamage } from './errors.ts'
import { APPLICATION_ID } from './migrate.ts'

/** The health of a SQLite file. */
export function health({ reader, read, write }: Connections): Pick<Store, 'checkReady' | 'checkIntegrity'> {
  const selectOne = reader.prepare('select 1 from users limit 1')

  return {
    async checkReady() {
      await read(() => selectOne.values())
      // It writes and syncs a page, and changes nothing.
      await write(['rewriteApplicationId']).catch(withKnownOutcome)
    },

    checkIntegrity: () => read(() => findProblems(reader)),
  }
}

/** Reads a whole database. Returns its problems, a line each. */
export function findProblems(db: Database): readonly string[] {
  try {
    const found = db.prepare('pragma main.integrity_check').values().flat().map(String)
    const orphans = db.prepare('pragma main.foreign_key_check').values()
    return [
      // SQLite reports several problems of one b-tree in one text.
      ...found.flatMap((text) => text.split('\n')).filter((line) => line !== 'ok'),
      ...orphans.map(([table]) => `a row of ${table} belongs to no user`),
    ]
  } catch (error) {
    // SQLite cannot read on after some kinds of damage. That is a problem to report, too.
    if (error instanceof Error && isDamage(error)) return [error.message]
    throw error
  }
}

/** The write that shows whether writing is possible. */
export const healthWrites = (writer: Database) => ({
  rewriteApplicationId: () => void writer.run(`pragma application_id = ${APPLICATION_ID}`),
})
