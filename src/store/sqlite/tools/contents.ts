import type { Database } from 'bun:sqlite'
import { COLUMNS, type Contents, KEYS, TABLES, type Table } from '../../tools/contents.ts'
import { rowsOf } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { readBatches } from './rows.ts'

/** Begins to read all rows as of now. The connection sees no later change. It must read integers as bigints. */
export function contentsOf(db: Database, path: string): Contents {
  db.run('begin')
  const counts = TABLES.map((table) => `(select count(*) from ${table})`)
  const [[users, tokens, plants] = []] = db.prepare(`select ${counts.join(', ')}`).values()
  const lastIds = new Map(rowsOf<[string, bigint]>(db.prepare('select name, seq from sqlite_sequence').values()))
  return {
    counts: { users: Number(users), tokens: Number(tokens), plants: Number(plants) },
    lastIds: { userId: lastIds.get('users') ?? 0n, tokenId: lastIds.get('tokens') ?? 0n },
    async *batches(table) {
      try {
        yield* readBatches(db.prepare(selectAll(table)))
      } catch (error) {
        throw toAppError(error, { duringWrite: false, path })
      }
    },
  }
}

const selectAll = (table: Table): string =>
  `select ${Object.keys(COLUMNS[table]).join(', ')} from ${table} order by ${KEYS[table].join(', ')}`
