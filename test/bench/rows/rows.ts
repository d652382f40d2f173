import { create } from './create.ts'
import { createLatency } from './create-latency.ts'
import { createOne } from './create-one.ts'
import { deleteRow } from './delete.ts'
import { list, listUsers } from './list.ts'
import { listLatency } from './list-latency.ts'
import { memory } from './memory.ts'
import { metrics } from './metrics.ts'
import { mix } from './mix.ts'
import { page } from './page.ts'
import { pgCopies } from './pg-copies.ts'
import { pgCreate } from './pg-create.ts'
import { pgList } from './pg-list.ts'
import { pgTrips } from './pg-trips.ts'
import type { Row } from './row.ts'
import { size } from './size.ts'
import { start } from './start.ts'

/** All rows, in the order in which they run. */
export const ROWS: readonly Row[] = [
  list,
  listUsers,
  create,
  deleteRow,
  createOne,
  mix,
  createLatency,
  listLatency,
  size,
  page,
  start,
  memory,
  metrics,
]

/** All rows on a PostgreSQL server, in the order in which they run. The last row gives that server all cores. */
export const POSTGRES_ROWS: readonly Row[] = [pgList, pgCreate, pgTrips, pgCopies]
