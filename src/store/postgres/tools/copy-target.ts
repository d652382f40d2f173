import { describeAddress } from '../../../domain/database-url.ts'
import { storeUnusable } from '../../errors.ts'
import { COLUMNS, type ColumnType, type Row, TABLES, type Table, type Target, toText } from '../../tools/contents.ts'
import { type Client, type ConnectionOptions, createClient, type Parameter } from '../connection.ts'
import { isConnectionLost, toAppError } from '../errors.ts'
import { migrate, SCHEMA_VERSION, schemaVersion, UNFINISHED_VERSION } from '../migrate.ts'
import { toOpenError } from '../open-errors.ts'
import { inspect } from '../preflight.ts'
import { lockTokens } from '../versions.ts'
import { contentsOf } from './contents.ts'
import { COPY_TIMEOUT_MS } from './copy-source.ts'
import { requireAlone } from './sessions.ts'

/** The longest time for a statement. The slowest one empties the tables of an unfinished copy. */
const STATEMENT_TIMEOUT_MS = 60_000

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
const ARRAY_TYPES = { integer: 'int8', text: 'text', bytes: 'text' } as const

/** Looking up the user of each plant takes longer than inserting the plant. One check of all plants at the end is faster. */
const DROP_REFERENCE = 'alter table plantstore.plants drop constraint if exists plants_user_id_fkey'
const ADD_REFERENCE = `alter table plantstore.plants
  add constraint plants_user_id_fkey foreign key (user_id) references plantstore.users (id)`

/** `CopyTools.fill` for PostgreSQL. Until the copy is finished, its schema has a version that every command refuses. */
export async function fillPostgres<T>(options: ConnectionOptions, fill: (target: Target) => Promise<T>): Promise<T> {
  const { address } = options
  const client = createClient(options, 1)
  try {
    try {
      await inspect(client, address, 'full')
      await requireAlone(client, address, { advice: 'end it' })
      if ((await schemaVersion(client)) !== UNFINISHED_VERSION) await migrate(client, { address, mustExist: false })
      await mark(client, describeAddress(address))
    } catch (error) {
      throw toOpenError(address, error)
    }
    return await fill(targetOf(client))
  } catch (error) {
    throw isConnectionLost(error) ? toAppError(error) : error
  } finally {
    await client.close()
  }
}

/** Marks an empty store as an unfinished copy, or empties an unfinished copy. */
async function mark(client: Client, database: string): Promise<void> {
  await client.transaction(async ({ query }) => {
    const [[version] = []] = await query<[bigint]>('select version from plantstore.schema_version for update')
    if (version === BigInt(UNFINISHED_VERSION)) {
      await query(DROP_REFERENCE)
      await query('truncate plantstore.plants, plantstore.tokens, plantstore.users, plantstore.writers')
      return
    }
    const rows = TABLES.map((table) => `select 1 from plantstore.${table}`).join(' union all ')
    const found = await query(`${rows} limit 1`)
    if (found.length > 0) throw storeUnusable(`The database ${database} is not empty: name another one.`)
    await query(DROP_REFERENCE)
    await query('update plantstore.schema_version set version = $1', [UNFINISHED_VERSION])
  }, STATEMENT_TIMEOUT_MS)
}

const targetOf = (client: Client): Target => ({
  async insert(table, rows) {
    const columns = Object.values(COLUMNS[table]).map((type, index) => toColumn(client, type, rows, index))
    await translated(client.query(insertInto(table), columns, STATEMENT_TIMEOUT_MS))
  },

  read: (use) => client.transaction(async (inside) => use(await contentsOf(inside)), COPY_TIMEOUT_MS),

  async finish({ userId, tokenId }) {
    // The first lists are slow without statistics of the tables.
    for (const table of TABLES) {
      await translated(client.query(`analyze plantstore.${table}`, [], STATEMENT_TIMEOUT_MS))
    }
    const finished = client.transaction(async (inside) => {
      // This statement reads all plants.
      await inside.query(ADD_REFERENCE)
      await lockTokens(inside)
      await inside.query('update plantstore.counters set last_user_id = $1, last_token_id = $2', [userId, tokenId])
      await inside.query('update plantstore.schema_version set version = $1', [SCHEMA_VERSION])
    }, COPY_TIMEOUT_MS)
    await translated(finished)
  },
})

/** The values of one column of the rows. */
function toColumn(client: Client, type: ColumnType, rows: readonly Row[], index: number): Parameter {
  const values = rows.map((row) => row[index] ?? null)
  // The type of a column is the type of its values.
  if (type === 'integer') return client.column(values as readonly (bigint | null)[], 'int8')
  return client.column(values.map(toText), 'text')
}

async function translated<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw toAppError(error)
  }
}
