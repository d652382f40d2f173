import { storeUnusable } from '../../errors.ts'
import {
  BATCH_ROWS,
  BATCH_TEXT_LENGTH,
  COLUMNS,
  type Contents,
  KEYS,
  type Row,
  type Source,
  TABLES,
  type Table,
} from '../../tools/contents.ts'
import { type Client, type ConnectionOptions, createClient, type Query } from '../driver.ts'
import { toAppError, toOpenError } from '../errors.ts'
import { migrate } from '../schema.ts'

/** The longest time for a copy: a day. */
export const COPY_TIMEOUT_MS = 86_400_000

/**
 * Replaces the timeouts of the role and the database for a transaction, which is idle while the other store works. The driver
 * reads no other form of bytes. Some databases lack some of these settings.
 */
export const settingsOfCopy = (idleTimeout: string): string =>
  `select pg_catalog.set_config(name, case name when 'bytea_output' then 'hex' when 'lock_timeout' then '2s'
     when 'idle_in_transaction_session_timeout' then '${idleTimeout}' else '0' end, true)
   from pg_catalog.pg_settings where name in ('bytea_output', 'lock_timeout', 'statement_timeout', 'transaction_timeout',
     'idle_in_transaction_session_timeout')`

/** Every write of this program changes one of these values. */
const SELECT_CHANGES = `select tokens_stamp, last_user_id, last_token_id,
    (select string_agg(id || ' ' || groups, ',' order by id) from plantstore.writers)
  from plantstore.counters`

/**
 * `CopyTools.read` for PostgreSQL. Without a snapshot, the source rejects at the end of a copy if this program has written to the
 * database since. It cannot tell whether a server is connected that writes later.
 */
export const readPostgres = <T>(options: ConnectionOptions, isSnapshot: boolean, use: (source: Source) => Promise<T>) =>
  withClients(options, async (client, other) => {
    await migrate(client, options.address, true).catch((error) => {
      throw toOpenError(options.address, error)
    })
    return client.transaction(async (query) => {
      // This must be the first statement. The transaction sees no later change.
      await query('set transaction isolation level repeatable read, read only')
      await query(settingsOfCopy('0'))
      const contents = await contentsOf(query)
      if (isSnapshot) return use(contents)
      const before = await query(SELECT_CHANGES)
      return use({
        ...contents,
        async requireUnchanged() {
          if (Bun.deepEquals(await other.query(SELECT_CHANGES), before)) return
          throw storeUnusable('The store was written to while it was copied: end its servers, or use --snapshot.')
        },
      })
    }, COPY_TIMEOUT_MS)
  })

/** Works with two connections, which are made when they are needed. */
export async function withClients<T>(options: ConnectionOptions, work: (client: Client, other: Client) => Promise<T>) {
  const [client, other] = [createClient(options, 1), createClient(options, 1)]
  try {
    return await work(client, other)
  } catch (error) {
    throw toAppError(error)
  } finally {
    await Promise.all([client.close(), other.close()])
  }
}

/** All rows, as the transaction sees them. */
export async function contentsOf(query: Query): Promise<Contents> {
  const counts = TABLES.map((table) => `(select count(*) from plantstore.${table})`)
  const [[users = 0n, tokens = 0n, plants = 0n] = []] = await query<bigint[]>(`select ${counts.join(', ')}`)
  const [[userId = 0n, tokenId = 0n] = []] = await query<bigint[]>(
    'select last_user_id, last_token_id from plantstore.counters',
  )
  return {
    counts: { users: Number(users), tokens: Number(tokens), plants: Number(plants) },
    lastIds: { userId, tokenId },
    batches: (table) => readBatches(query, table),
  }
}

async function* readBatches(query: Query, table: Table): AsyncGenerator<readonly Row[]> {
  let key: readonly bigint[] = []
  for (;;) {
    const batch = await query<Row>(selectBatch(table, key), key)
    const last = batch.at(-1)
    if (last === undefined) return
    // The first columns are the key, and all keys are integers.
    key = last.slice(0, KEYS[table].length) as bigint[]
    yield batch
  }
}

/** The rows after a key. A batch ends with the row that makes its text too long: 2000 large plants would not fit in memory. */
function selectBatch(table: Table, after: readonly bigint[]): string {
  const key = KEYS[table].join(', ')
  const names = Object.keys(COLUMNS[table])
  const columns = names.join(', ')
  const parameters = after.map((_, index) => `$${index + 1}::int8`).join(', ')
  const condition = after.length === 0 ? '' : `where (${key}) > (${parameters})`
  // PostgreSQL knows the length of a text without reading it.
  const textBytes = names
    .filter((name) => COLUMNS[table][name] === 'text')
    .map((name) => `coalesce(octet_length(${name}), 0)`)
    .join(' + ')
  return `select ${columns} from (
      select ${columns}, sum(${textBytes})
        over (order by ${key} rows between unbounded preceding and 1 preceding) as bytes_before
      from (select ${columns} from plantstore.${table} ${condition} order by ${key} limit ${BATCH_ROWS}) as next_rows
    ) as measured where coalesce(bytes_before, 0) < ${BATCH_TEXT_LENGTH} order by ${key}`
}
