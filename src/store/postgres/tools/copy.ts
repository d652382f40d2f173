import { describeAddress } from '../../../database-url.ts'
import { storeUnusable } from '../../../engine/errors.ts'
import type { CopyOptions } from '../../database.ts'
import { TABLES } from '../../tables.ts'
import type { Source, Target } from '../../tools/contents.ts'
import { AnswerTimeout, type Client, type ConnectionOptions, createClient, type Query, sqlState } from '../driver.ts'
import { isConnectionLost, isTemporary, repeat, toAppError, toOpenError } from '../errors.ts'
import { inspect, migrate } from '../schema.ts'
import { insertRows } from '../tables.ts'
import { randomStamp } from '../token-changes.ts'
import { contentsOf } from './contents.ts'

/** The longest time for a copy: a day. */
const COPY_TIMEOUT_MS = 86_400_000
/** The longest time for the commit, and for the statistics of a table. */
const COMMIT_TIMEOUT_MS = 60_000
/** The database ends the transaction of the target if it hears nothing for so long: the copy may have lost its connection. */
const IDLE_TIMEOUT = '30s'
/** How long to ask whether a commit was done whose connection was lost. It is more than `IDLE_TIMEOUT`. */
const LOOK_MS = 45_000

/** Settings of a copy beside `idle_in_transaction_session_timeout`. The driver reads no other form of bytes. */
const SETTINGS = { bytea_output: 'hex', lock_timeout: '2s', statement_timeout: '0', transaction_timeout: '0' }

/** Replaces settings of role and database for a transaction. Some databases lack some, or refuse names that are no literals. */
async function applySettings(query: Query, idleTimeout: string): Promise<void> {
  const known = (await query<{ readonly name: string }>('select name from pg_catalog.pg_settings')).map(
    ({ name }) => name,
  )
  for (const [name, value] of Object.entries({ ...SETTINGS, idle_in_transaction_session_timeout: idleTimeout }))
    if (known.includes(name)) await query(`select pg_catalog.set_config('${name}', '${value}', true)`)
}

/** Every write of this program changes one of these values. */
const SELECT_CHANGES = `select tokens_stamp, last_user_id, last_token_id,
    (select string_agg(id || ' ' || groups, ',' order by id) from plantstore.writers)
  from plantstore.counters`

/**
 * Locks the counters until the transaction ends. A copy does so before it writes, so that meanwhile no server makes users or
 * tokens, nor plants, which need a user. After a lost commit it locks them again: this waits until the database has ended the
 * lost transaction.
 */
const LOCK = 'select tokens_stamp as stamp from plantstore.counters for update'
type Locked = { readonly stamp: bigint }

/**
 * `CopyTools.read` for PostgreSQL. Without a snapshot, the source rejects at the end of a copy if this program has written to the
 * database since. It cannot tell whether a server is connected that writes later.
 */
export const readPostgres = <T>(options: ConnectionOptions, isSnapshot: boolean, use: (source: Source) => Promise<T>) =>
  withClient(options, async (client) => {
    await opened(options, migrate(client, options.address, { mustExist: true }))
    return client.transaction(async (query) => {
      // This must be the first statement. The transaction sees no later change.
      await query('set transaction isolation level repeatable read, read only')
      await applySettings(query, '0')
      const contents = await contentsOf(query)
      if (isSnapshot) return use(contents)
      const before = await query(SELECT_CHANGES)
      return use({
        ...contents,
        async requireUnchanged() {
          if (Bun.deepEquals(await client.query(SELECT_CHANGES), before)) return
          throw storeUnusable('The store was written to while it was copied: end its servers, or use --snapshot.')
        },
      })
    }, COPY_TIMEOUT_MS)
  })

/** `CopyTools.fill` for PostgreSQL: one transaction, after the migrations. */
export const fillPostgres = <T>(
  options: ConnectionOptions,
  { durability = 'full', onRaised }: CopyOptions,
  fill: (target: Target) => Promise<T>,
): Promise<T> =>
  withClient(options, async (client) => {
    const { address } = options
    const database = describeAddress(address)
    await opened(options, inspect(client, address, durability))
    await opened(options, migrate(client, address, { onRaised }))
    const stamps = { before: 0n, after: randomStamp() }
    const commit = Promise.withResolvers<never>()
    let filled: { readonly result: T } | undefined
    const work = async (query: Query): Promise<T> => {
      await applySettings(query, IDLE_TIMEOUT)
      stamps.before = await lockEmpty(query, database)
      filled = { result: await fill(targetOf(query, stamps.after)) }
      setTimeout(() => commit.reject(new AnswerTimeout('the commit was not answered')), COMMIT_TIMEOUT_MS).unref()
      return filled.result
    }
    const committing = Promise.race([client.transaction(work, COPY_TIMEOUT_MS), commit.promise])
    const result = await committing.catch(async (error) => {
      if (filled === undefined || !isConnectionLost(error)) throw error
      await requireCommitted(client, stamps, database, error)
      return filled.result
    })
    // Lists may be slow until a table has statistics. If this fails, the database makes them later by itself.
    for (const table of TABLES) {
      await client.query(`analyze plantstore.${table}`, [], COMMIT_TIMEOUT_MS).catch(() => undefined)
    }
    return result
  })

async function withClient<T>(options: ConnectionOptions, work: (client: Client) => Promise<T>): Promise<T> {
  const client = createClient(options, 2)
  try {
    return await work(client)
  } catch (error) {
    throw toAppError(error)
  } finally {
    await client.close()
  }
}

/** Translates the error with which a step fails that opens a store. */
const opened = ({ address }: ConnectionOptions, step: Promise<unknown>): Promise<unknown> =>
  step.catch((error) => {
    throw toOpenError(address, error)
  })

/** Locks an empty store until the transaction ends. Returns the stamp of its tokens. */
async function lockEmpty(query: Query, database: string): Promise<bigint> {
  const [locked] = await query<Locked>(LOCK).catch((error) => {
    if (sqlState(error) !== '55P03') throw error
    throw storeUnusable(`The database ${database} is locked, perhaps by another plantstore copy: let it end.`, error)
  })
  const rows = TABLES.map((table) => `select 1 from plantstore.${table}`).join(' union all ')
  const found = await query(`${rows} limit 1`)
  if (found.length > 0) throw storeUnusable(`The database ${database} is not empty: name another one.`)
  return locked?.stamp ?? 0n
}

/** Looks for the stamp of a transaction whose connection was lost. Rejects unless the transaction was committed. */
async function requireCommitted(
  client: Client,
  { before, after }: Readonly<Record<'before' | 'after', bigint>>,
  database: string,
  cause: unknown,
): Promise<void> {
  const lost = `The connection to ${database} was lost at the commit`
  const [found] = await repeat(LOOK_MS, isTemporary, () => client.query<Locked>(LOCK)).catch(() => [])
  if (found?.stamp === after) return
  const outcome =
    found?.stamp === before
      ? 'The copy is not committed: run the same command again.'
      : 'Whether the copy is committed is unknown: run the same command again, which refuses a database that has rows.'
  throw storeUnusable(`${lost}. ${outcome}`, cause)
}

const targetOf = (query: Query, stamp: bigint): Target => ({
  insert: (table, rows) => insertRows(query, table, rows),

  async read({ userId, tokenId }, use) {
    // Without an entry in `token_changes`, this stamp invalidates what any server has cached.
    const update = 'update plantstore.counters set last_user_id = $1, last_token_id = $2, tokens_stamp = $3'
    await query(update, [userId, tokenId, stamp])
    return use(await contentsOf(query))
  },
})
