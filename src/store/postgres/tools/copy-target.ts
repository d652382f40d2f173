import { describeAddress } from '../../../domain/database-url.ts'
import { PLANT_FIELDS } from '../../../domain/plant.ts'
import { storeUnusable } from '../../errors.ts'
import { PLANT_COLUMNS } from '../../plant-columns.ts'
import type { Row, Table, Target } from '../../tools/contents.ts'
import { type Client, type ConnectionOptions, createClient, type Parameter } from '../connection.ts'
import { isConnectionLost, toAppError } from '../errors.ts'
import { migrate, SCHEMA_VERSION, schemaVersion, UNFINISHED_VERSION } from '../migrate.ts'
import { toOpenError } from '../open-errors.ts'
import { inspect } from '../preflight.ts'
import { lockTokens } from '../versions.ts'
import { contentsOf } from './contents.ts'
import { COPY_TIMEOUT_MS } from './copy-source.ts'
import { requireAlone } from './sessions.ts'

/** How long a statement may take: the longest one empties what a copy before this one has left. */
const STATEMENT_TIMEOUT_MS = 60_000

/** How rows are added, a column of them in each parameter. Arrays of bytes are sent as text. */
const INSERTS: Readonly<Record<Table, string>> = {
  users: `insert into plantstore.users (id, name, created_at_ms)
    select * from unnest($1::int8[], $2::text[], $3::int8[])`,
  tokens: `insert into plantstore.tokens
      (id, user_id, hash, scope, label, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms)
    select id, user_id, decode(hash, 'hex'), scope, label, created, expires, revoked, used
    from unnest($1::int8[], $2::int8[], $3::text[], $4::text[], $5::text[], $6::int8[], $7::int8[], $8::int8[], $9::int8[])
      as token (id, user_id, hash, scope, label, created, expires, revoked, used)`,
  plants: `insert into plantstore.plants (${PLANT_COLUMNS.join(', ')})
    select * from unnest($1::int8[], $2::int8[], ${PLANT_FIELDS.map((_, index) => `$${index + 3}::text[]`).join(', ')})`,
}
const TYPES: Readonly<Record<Table, readonly ('int8' | 'text')[]>> = {
  users: ['int8', 'text', 'int8'],
  tokens: ['int8', 'int8', 'text', 'text', 'text', 'int8', 'int8', 'int8', 'int8'],
  plants: ['int8', 'int8', ...PLANT_FIELDS.map(() => 'text' as const)],
}

/** To look up a plant's user takes longer than to add the plant: it is done for all at the end. */
const DROP_REFERENCE = 'alter table plantstore.plants drop constraint if exists plants_user_id_fkey'
const ADD_REFERENCE = `alter table plantstore.plants
  add constraint plants_user_id_fkey foreign key (user_id) references plantstore.users (id)`

/**
 * Makes a store to copy into, where there is none, an empty one, or one that was not finished. From then on, until it is
 * finished, its schema has a version that every use of it refuses. Rejects with `store_unusable` where a process of ours is
 * connected to the database, and where it holds something: then it stays as it was.
 */
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

/** Marks a store that is empty, or empties one that is marked. */
async function mark(client: Client, database: string): Promise<void> {
  await client.transaction(async ({ query }) => {
    const [[version] = []] = await query<[bigint]>('select version from plantstore.schema_version for update')
    if (version === BigInt(UNFINISHED_VERSION)) {
      await query(DROP_REFERENCE)
      await query('truncate plantstore.plants, plantstore.tokens, plantstore.users, plantstore.writers')
      return
    }
    const found = await query(
      `select 1 from plantstore.users union all select 1 from plantstore.tokens union all select 1 from plantstore.plants
       limit 1`,
    )
    if (found.length > 0) throw storeUnusable(`The database ${database} is not empty: name another one.`)
    await query(DROP_REFERENCE)
    await query('update plantstore.schema_version set version = $1', [UNFINISHED_VERSION])
  }, STATEMENT_TIMEOUT_MS)
}

const targetOf = (client: Client): Target => ({
  async add(table, rows) {
    await inTheirTerms(client.query(INSERTS[table], columnsOf(client, table, rows), STATEMENT_TIMEOUT_MS))
  },
  read: (use) =>
    client.transaction(async (inside) => {
      await inTheirTerms(inside.query('set transaction isolation level repeatable read, read only'))
      return use(await contentsOf(inside))
    }, COPY_TIMEOUT_MS),
  async finish({ userId, tokenId }) {
    // What is known of tables by chance is too little for the first lists.
    for (const table of ['users', 'tokens', 'plants']) {
      await inTheirTerms(client.query(`analyze plantstore.${table}`, [], STATEMENT_TIMEOUT_MS))
    }
    const finished = client.transaction(async (inside) => {
      await inside.query(ADD_REFERENCE)
      await lockTokens(inside)
      await inside.query('update plantstore.counters set last_user_id = $1, last_token_id = $2', [userId, tokenId])
      await inside.query('update plantstore.schema_version set version = $1', [SCHEMA_VERSION])
      // It looks at every plant.
    }, COPY_TIMEOUT_MS)
    await inTheirTerms(finished)
  },
})

function columnsOf(client: Client, table: Table, rows: readonly Row[]): readonly Parameter[] {
  return TYPES[table].map((type, index) => {
    const values = rows.map((row) => row[index] ?? null)
    // Rows have the types of their columns, in every store.
    if (type === 'int8') return client.column(values as readonly (bigint | null)[], 'int8')
    return client.column(values.map(toText), 'text')
  })
}

const toText = (value: Row[number]): string | null =>
  value instanceof Uint8Array ? Buffer.from(value).toString('hex') : (value?.toString() ?? null)

async function inTheirTerms<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw toAppError(error)
  }
}
