import type { StoreStatistics } from '../../domain/statistics.ts'
import type { Connections } from './connections.ts'

/** Tables with their indexes and large texts. */
const SELECT_BYTES = `select sum(pg_catalog.pg_total_relation_size(tables.oid))::int8
  from pg_catalog.pg_class as tables join pg_catalog.pg_namespace as schemas on schemas.oid = tables.relnamespace
  where schemas.nspname = 'plantstore' and tables.relkind = 'r'`

/** The statistics of a PostgreSQL database. */
export const statistics = ({ read, plants }: Connections): StoreStatistics => ({
  load: plants.load,

  async sizes() {
    const [[bytes] = []] = await read<[bigint]>(SELECT_BYTES)
    // All databases of the server share its WAL.
    return { databaseBytes: Number(bytes), walBytes: 0 }
  },
})
