import type { StoreStatistics } from '../../domain/statistics.ts'
import type { Parameter } from './connection.ts'
import type { Connections } from './connections.ts'

/** Rows that are counted in one step, which takes no longer than a list of some pages. */
const COUNT_STEP_ROWS = 2000
/** After a step comes a pause of so many times what it took: counting takes at most a 400th of a core of the server. */
const COUNT_PAUSE_TIMES = 399

/** What every writer has written, and the last change of tokens and users: nothing else changes what is counted. */
const SELECT_STATE = `select concat(
    (select tokens_stamp from plantstore.counters), ' ',
    (select string_agg(concat(id, ':', groups), ' ' order by id) from plantstore.writers)
  )`
/** Tables with their indexes and large texts. */
const SELECT_BYTES = `select sum(pg_catalog.pg_total_relation_size(tables.oid))::int8
  from pg_catalog.pg_class as tables join pg_catalog.pg_namespace as schemas on schemas.oid = tables.relnamespace
  where schemas.nspname = 'plantstore' and tables.relkind = 'r'`

type Key = readonly bigint[]

/** Of all users: nobody but the operator is told. Users and tokens have numbers from 1 on. */
const PLANTS = {
  firstKey: [0n, 0n] as Key,
  skip: 'select user_id, id from plantstore.plants where (user_id, id) > ($1, $2) order by user_id, id limit 1 offset $3',
  rest: 'select count(*) from plantstore.plants where (user_id, id) > ($1, $2)',
}
const TOKENS = {
  firstKey: [0n] as Key,
  skip: 'select id from plantstore.tokens where id > $1 order by id limit 1 offset $2',
  rest: 'select count(*) from plantstore.tokens where id > $1',
}

/** What PostgreSQL tells those who operate it. */
export function statistics({ read, plants }: Connections): StoreStatistics {
  let countedState: unknown

  const scalarOf = async (text: string, parameters: readonly Parameter[] = []) =>
    (await read<[unknown]>(text, parameters))[0]?.[0]
  const countAll = async ({ firstKey, skip, rest }: typeof PLANTS): Promise<number> => {
    let key = firstKey
    for (let counted = 0; ; counted += COUNT_STEP_ROWS) {
      const startMs = performance.now()
      const [next] = await read<Key>(skip, [...key, COUNT_STEP_ROWS - 1])
      if (next === undefined) return counted + Number(await scalarOf(rest, key))
      key = next
      await Bun.sleep((performance.now() - startMs) * COUNT_PAUSE_TIMES)
    }
  }

  return {
    load: plants.load,

    // The log of writes is the server's, and of all its databases.
    sizes: async () => ({ databaseBytes: Number(await scalarOf(SELECT_BYTES)), walBytes: 0 }),

    async count(previous) {
      const state = await scalarOf(SELECT_STATE)
      if (previous !== undefined && state === countedState) return previous
      const counts = { plants: await countAll(PLANTS), tokens: await countAll(TOKENS) }
      // As of before: what has changed meanwhile is counted the next time.
      countedState = state
      return counts
    },
  }
}
