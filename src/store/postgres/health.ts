import { PLANT_FIELDS } from '../../domain/plant.ts'
import { EXPIRES_SOON_MS, EXPIRING_TOKENS_MAX, type Health } from '../../domain/store.ts'
import { NOBODY } from '../../domain/token.ts'
import { AppError, withKnownOutcome } from '../../error.ts'
import { NO_PLANT } from '../preconditions.ts'
import { findRuleBreaks, LAST_ID_MAX } from '../row-rules.ts'
import { type Connections, READ_ALL_TIMEOUT_MS } from './connections.ts'
import { sqlState } from './driver.ts'

/** PostgreSQL reads a whole text to count its characters. No length is negative, so these statements find nothing. */
const NEGATIVE_LENGTH = PLANT_FIELDS.map((field) => `length(${field}) < 0`).join(' or ')

/** Statements that return the problems of a store, a line each. They read a whole table. */
const CHECKS: readonly string[] = [
  `select 'a text has no length' from plantstore.plants where ${NEGATIVE_LENGTH}`,
  "select 'a token has no hash' from plantstore.tokens where length(label) < 0 or length(hash) <> 32",
  ...['user', 'token'].map(
    (row) => `select '${row}s are miscounted' from plantstore.counters
      where last_${row}_id not between (select coalesce(max(id), 0) from plantstore.${row}s) and ${LAST_ID_MAX}`,
  ),
  ...findRuleBreaks('plantstore.'),
]

const COUNT_EXPIRING = `select count(*) as tokens from (select 1 from plantstore.tokens where revoked_at_ms is null
  and replaced_by is null and expires_at_ms > $1 and expires_at_ms <= $2 limit ${EXPIRING_TOKENS_MAX}) as soon`

/** The size of all tables, indexes and large texts. Some databases cannot tell it, do not let this user ask, or tell 0. */
const MEASURE_SIZE = `select sum(pg_catalog.pg_total_relation_size(tables.oid))::int8 as bytes
  from pg_catalog.pg_class as tables join pg_catalog.pg_namespace as schemas on schemas.oid = tables.relnamespace
  where schemas.nspname = 'plantstore' and tables.relkind = 'r'`

export const health = ({ read, writePlant, load }: Connections) =>
  ({
    async checkReady() {
      await read('select 1 from plantstore.plants where user_id = $1', [NOBODY])
      // Writes have connections of their own. The create of a user who does not exist writes to the ledger, and stores no plant.
      await writePlant({ kind: 'create', user: NOBODY, id: 0n, values: NO_PLANT, expected: 'none' }).catch((error) => {
        if (!(error instanceof AppError && error.kind === 'token_invalid')) withKnownOutcome(error)
      })
    },

    async checkIntegrity() {
      const problems: string[] = []
      for (const select of CHECKS) {
        try {
          const found = await read<Record<string, string>>(select, [], READ_ALL_TIMEOUT_MS)
          problems.push(...found.flatMap(Object.values))
        } catch (error) {
          const cause = error instanceof Error ? error.cause : undefined
          // A damaged table or index is a result, too.
          if (!/^XX00[012]$/.test(sqlState(cause))) throw error
          problems.push(String(cause))
        }
      }
      return problems
    },

    load,

    async measure(nowMs) {
      const [expiring] = await read<{ readonly tokens: bigint }>(COUNT_EXPIRING, [nowMs, nowMs + EXPIRES_SOON_MS])
      const [size] = await read<{ readonly bytes: bigint | null }>(MEASURE_SIZE).catch(() => [])
      const databaseBytes = Number(size?.bytes ?? 0) || undefined
      // All databases of the server share its WAL.
      return { databaseBytes, walBytes: 0, expiringTokens: Number(expiring?.tokens) }
    },
  }) satisfies Health
