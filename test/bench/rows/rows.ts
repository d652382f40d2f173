import { OWN_RATES } from './own.ts'
import { pgCopies } from './pg-copies.ts'
import { PROCESS_ROWS } from './process.ts'
import { POSTGRES_RACES, RACES } from './races.ts'
import type { Row } from './row.ts'
import { threads } from './threads.ts'

/** All rows, in the order in which they run. */
export const ROWS: readonly Row[] = [...RACES, ...OWN_RATES, ...PROCESS_ROWS, threads]

/** All rows on a PostgreSQL server, in the order in which they run. The last row gives that server all cores. */
export const POSTGRES_ROWS: readonly Row[] = [...POSTGRES_RACES, pgCopies]
