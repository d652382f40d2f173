import { describeAddress, type PostgresAddress } from '../../../domain/database-url.ts'
import { AppError } from '../../../domain/error.ts'
import type { CopyAccess, CopyTools } from '../../engine.ts'
import { storeUnusable } from '../../errors.ts'
import {
  BATCH_ROWS,
  BATCH_TEXT_LENGTH,
  COLUMNS,
  type Contents,
  KEYS,
  type Row,
  TABLES,
  type Table,
  type Target,
  toText,
} from '../../tools/contents.ts'
import { APPLICATION_NAME, type Client, type ConnectionOptions, createClient, type Transaction } from '../connection.ts'
import { isUnsupported, repeat, toAppError, toOpenError } from '../errors.ts'
import { inspect, migrate, SCHEMA_VERSION, schemaVersion, UNFINISHED_VERSION } from '../schema.ts'
import { randomStamp } from '../versions.ts'

/** The longest time for a copy: a day. */
const COPY_TIMEOUT_MS = 86_400_000
/** The longest time for a statement. The slowest one empties the tables of an unfinished copy. */
const STATEMENT_TIMEOUT_MS = 60_000
/** PostgreSQL keeps the connection of a process that has ended for a moment. */
const PATIENCE_MS = 2000

const ARRAY_TYPES = { integer: 'int8', text: 'text', bytes: 'text' } as const

/**
 * Inserts rows, with one array of values for each column. The driver cannot send an array of bytes, so bytes are sent in
 * hexadecimal.
 */
const insertInto = (table: Table): string => {
  const columns = Object.entries(COLUMNS[table])
  const names = columns.map(([name]) => name).join(', ')
  const values = columns.map(([name, type]) => (type === 'bytes' ? `decode(${name}, 'hex')` : name))
  const arrays = columns.map(([, type], index) => `$${index + 1}::${ARRAY_TYPES[type]}[]`)
  return `insert into plantstore.${table} (${names})
    select ${values.join(', ')} from unnest(${arrays.join(', ')}) as rows (${names})`
}

/** Every write of this program changes one of these numbers. */
const SELECT_CHANGES = `select tokens_stamp, last_user_id, last_token_id,
    (select coalesce(sum(groups), 0)::int8 from plantstore.writers)
  from plantstore.counters`

/**
 * Copies to and from a PostgreSQL database. Without a snapshot, `read` also rejects if another process of this program is
 * connected at the end, or has written to the database. Until a filled store is finished, its schema has a version that every command
 * refuses.
 */
export const copyTools = (
  options: ConnectionOptions,
  { isSnapshot = false, assumesAlone = false, durability = 'full' }: CopyAccess,
): CopyTools => {
  const { address } = options
  return {
    read: (use) =>
      withClients(options, async (client, watcher) => {
        await opening(address, async () => void (await migrate(client, address, true)))
        return client.transaction(async (inside) => {
          const contents = await contentsOf(inside)
          if (isSnapshot) return use(contents)
          const requireNoOther = async () => {
            if (!assumesAlone) await requireAlone(watcher, inside, address, ', or use --snapshot')
          }
          await requireNoOther()
          const before = await inside.query(SELECT_CHANGES)
          return use({
            ...contents,
            async requireUnchanged() {
              await requireNoOther()
              if (Bun.deepEquals(await watcher.query(SELECT_CHANGES), before)) return
              throw storeUnusable('The store was written to while it was copied: end its servers, or use --snapshot.')
            },
          })
        }, COPY_TIMEOUT_MS)
      }),

    fill: (fill) =>
      withClients(options, async (client, watcher) => {
        await opening(address, async () => {
          await inspect(client, address, durability)
          if (!assumesAlone) await client.transaction((inside) => requireAlone(watcher, inside, address))
          if ((await schemaVersion(client)) !== UNFINISHED_VERSION) await migrate(client, address, false)
          await mark(client, describeAddress(address))
        })
        return fill(targetOf(client))
      }),
  }
}

/** Works with two connections, which are made when they are needed. */
async function withClients<T>(options: ConnectionOptions, work: (client: Client, other: Client) => Promise<T>) {
  const [client, other] = [createClient(options, 1), createClient(options, 1)]
  try {
    return await work(client, other)
  } catch (error) {
    throw toAppError(error)
  } finally {
    await Promise.all([client.close(), other.close()])
  }
}

const opening = (address: PostgresAddress, work: () => Promise<void>): Promise<void> =>
  work().catch((error) => {
    throw toOpenError(address, error)
  })

/** The other sessions of this program in the database. */
const OTHER_SESSIONS = `select pid::int8 from pg_catalog.pg_stat_activity
  where datname = pg_catalog.current_database() and application_name = $1 and pid <> pg_catalog.pg_backend_pid()`

/**
 * Rejects with `store_unusable` if another process of this program is connected to the database. A server is always connected,
 * unless it has lost the database. Some databases show no sessions of others. So this first looks for `own`, the other session
 * of this process, and rejects if the database does not show it. A database that shows the sessions of one node cannot be told.
 */
async function requireAlone(watcher: Client, own: Transaction, address: PostgresAddress, orElse = ''): Promise<void> {
  const database = `The database ${describeAddress(address)}`
  const [[ownPid] = []] = await own.query<[bigint]>('select pg_catalog.pg_backend_pid()::int8')
  const otherPids = async () => {
    try {
      return (await watcher.query<[bigint]>(OTHER_SESSIONS, [APPLICATION_NAME])).flat()
    } catch (error) {
      if (isUnsupported(error)) return []
      throw error
    }
  }
  if (ownPid === undefined || !(await otherPids()).includes(ownPid)) {
    throw storeUnusable(`${database} does not show who uses it: end all its servers and use --assume-alone${orElse}.`)
  }
  await repeat(
    PATIENCE_MS,
    (error) => error instanceof AppError,
    async () => {
      if ((await otherPids()).every((pid) => pid === ownPid)) return
      throw storeUnusable(`${database} is open in another process: end it${orElse}.`)
    },
  )
}

/** Marks an empty store as an unfinished copy, or empties an unfinished copy. */
async function mark(client: Client, database: string): Promise<void> {
  await client.transaction(async ({ query }) => {
    const [[version] = []] = await query<[bigint]>('select version from plantstore.schema_version for update')
    if (version === BigInt(UNFINISHED_VERSION)) {
      await query('truncate plantstore.plants, plantstore.tokens, plantstore.users, plantstore.writers')
      return
    }
    const rows = TABLES.map((table) => `select 1 from plantstore.${table}`).join(' union all ')
    const found = await query(`${rows} limit 1`)
    if (found.length > 0) throw storeUnusable(`The database ${database} is not empty: name another one.`)
    await query('update plantstore.schema_version set version = $1', [UNFINISHED_VERSION])
  }, STATEMENT_TIMEOUT_MS)
}

const targetOf = (client: Client): Target => ({
  async insert(table, rows) {
    const columns = Object.values(COLUMNS[table]).map((type, index) => {
      const texts = rows.map((row) => toText(row[index] ?? null))
      return client.column(texts, ARRAY_TYPES[type])
    })
    await client.query(insertInto(table), columns, STATEMENT_TIMEOUT_MS)
  },

  read: (use) => client.transaction(async (inside) => use(await contentsOf(inside)), COPY_TIMEOUT_MS),

  async finish({ userId, tokenId }) {
    // The first lists are slow without statistics of the tables.
    for (const table of TABLES) await client.query(`analyze plantstore.${table}`, [], STATEMENT_TIMEOUT_MS)
    await client.transaction(async (inside) => {
      // Without an entry in `token_changes`, this stamp invalidates what any server has cached.
      const update = 'update plantstore.counters set last_user_id = $1, last_token_id = $2, tokens_stamp = $3'
      await inside.query(update, [userId, tokenId, randomStamp()])
      await inside.query('update plantstore.schema_version set version = $1', [SCHEMA_VERSION])
    })
  },
})

/** Begins to read all rows as of now. The transaction sees no later change. */
async function contentsOf({ query }: Transaction): Promise<Contents> {
  await query('set transaction isolation level repeatable read, read only')
  // The transaction is idle while the other store takes rows, and while it is verified.
  await query('set local idle_in_transaction_session_timeout = 0')
  // The driver reads no other form of bytes.
  await query(`set local bytea_output = 'hex'`)
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

async function* readBatches(query: Transaction['query'], table: Table): AsyncGenerator<readonly Row[]> {
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
