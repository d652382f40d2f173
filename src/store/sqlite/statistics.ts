import type { Database } from 'bun:sqlite'
import { statSync } from 'node:fs'
import type { StoreStatistics } from '../../domain/statistics.ts'
import { rowsOf } from './connection.ts'
import type { Connections } from './connections.ts'

/** Rows that are counted in one step, which takes no longer than a list of some pages. */
export const COUNT_STEP_ROWS = 2000
/** After a step comes a pause of so many times what it took: counting takes at most a 400th of a core, at any size. */
const COUNT_PAUSE_TIMES = 399

/** What SQLite tells those who operate it. */
export function statistics({ path, reader, read, load }: Connections): StoreStatistics {
  // Not before somebody asks: a start has no time for it.
  let statements: Statements | undefined
  let countedVersion: bigint | undefined

  const countAll = async ({ firstKey, skip, rest }: CountedTable): Promise<number> => {
    let key = firstKey
    for (let counted = 0; ; counted += COUNT_STEP_ROWS) {
      const startMs = performance.now()
      const next = await read(() => rowsOf<Key>(skip.values(...key, COUNT_STEP_ROWS - 1))[0])
      if (next === undefined) return counted + Number(await read(() => rowsOf<[bigint]>(rest.values(...key))[0]?.[0]))
      key = next
      await Bun.sleep((performance.now() - startMs) * COUNT_PAUSE_TIMES)
    }
  }

  return {
    load,

    sizes: async () => ({ databaseBytes: bytesOf(path), walBytes: bytesOf(`${path}-wal`) }),

    async count(previous) {
      statements ??= await read(() => prepare(reader))
      const { dataVersion, plants, tokens } = statements
      const version = await read(() => rowsOf<[bigint]>(dataVersion.values())[0]?.[0])
      if (previous !== undefined && version === countedVersion) return previous
      const counts = { plants: await countAll(plants), tokens: await countAll(tokens) }
      // As of before: what has changed meanwhile is counted the next time.
      countedVersion = version
      return counts
    },
  }
}

const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** A row by the columns by which its table is ordered. */
type Key = readonly bigint[]
type Statements = ReturnType<typeof prepare>
type CountedTable = Statements['plants']

/** Of all users: nobody but the operator is told. Users and tokens have numbers from 1 on. */
const prepare = (reader: Database) => ({
  // Changes with the commits of all other connections, the writing one of this store included
  // (https://sqlite.org/pragma.html#pragma_data_version).
  dataVersion: reader.prepare('pragma data_version'),
  plants: {
    firstKey: [0n, 0n] as Key,
    skip: reader.prepare<unknown, (bigint | number)[]>(
      'select user_id, id from plants where (user_id, id) > (?1, ?2) order by user_id, id limit 1 offset ?3',
    ),
    rest: reader.prepare<unknown, bigint[]>('select count(*) from plants where (user_id, id) > (?1, ?2)'),
  },
  tokens: {
    firstKey: [0n] as Key,
    skip: reader.prepare<unknown, (bigint | number)[]>(
      'select id from tokens where id > ?1 order by id limit 1 offset ?2',
    ),
    rest: reader.prepare<unknown, bigint[]>('select count(*) from tokens where id > ?1'),
  },
})
