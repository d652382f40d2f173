import { sleepSync } from 'bun'
import { rowsOf } from '../../../src/engine/sqlite/driver.ts'
import type { Format } from '../../../src/engine/sqlite/format.ts'
import type { Program } from '../../../src/engine/sqlite/program.ts'

const RAISE = 'insert into counters values (?1, 1) on conflict do update set count = count + 1 returning count'

/** A product that counts for owners. The engine serves it as it serves plants. */
export const COUNTERS: Program = {
  open(writer) {
    const raise = writer.prepare<unknown, [number]>(RAISE)
    return {
      writes: {
        raise: (owner: number) => Number(raise.values(owner)[0]?.[0]),
        /** Makes its commit take longer. */
        pause: (_owner: number, ms: number) => sleepSync(ms),
      },
      forget() {},
    }
  },
  invalidates: ([, owner]) => ({ owner: Number(owner), lowestId: undefined }),
  isSmall: () => true,
}

export type CounterWrites = { readonly raise: (owner: number) => number }

export const COUNTERS_FORMAT: Format = {
  applicationId: 0x636e7472,
  migrations: ['create table counters (owner integer primary key, count integer not null) strict'],
  findBrokenRows: (db) =>
    rowsOf<[bigint]>(db, 'select owner from counters where count < 1').map(([owner]) => `counter ${owner} is below 1`),
  countRows: (db, schema) => ({
    counters: Number(rowsOf<[bigint]>(db, `select count(*) from ${schema}.counters`)[0]?.[0]),
  }),
  largest: { table: 'counters', key: ['owner'] },
  notCloned: [],
}
