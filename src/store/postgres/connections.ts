import { AppError } from '../../domain/error.ts'
import type { StoreObserver } from '../../domain/statistics.ts'
import type { UserId } from '../../domain/token.ts'
import { type Client, type ConnectionOptions, createClient, type Parameter, type Transaction } from './connection.ts'
import { isConflict, isLost, isUnreached, toAppError } from './errors.ts'
import { type Clocks, openWriter, WRITE_TIMEOUT_MS } from './ledger.ts'
import { queueWrites, type WriteQueue } from './queue.ts'
import { type TokenVersions, watchTokens } from './versions.ts'

/** Connections that read, besides one for each kind of groups: of a server, and of a command that does one thing. */
const READERS_OF_SERVER = 8
const READERS_OF_COMMAND = 1
/** How many reads may be under way or wait for them. What comes then is refused. */
export const READS_MAX = 4096
/** How long a read may take: no request is to wait for longer than the shortest --idle-timeout, which would cut it. */
const READ_TIMEOUT_MS = 2000
/** How long what reads whole tables may take, for which an administrator waits and no request: an hour. */
export const READ_ALL_TIMEOUT_MS = 3_600_000
const RETRY_MS = 20

/** The connections of a store, and the one way through which everything reads and writes. */
export interface Connections {
  /** Runs one statement that only reads, once more where its connection was lost. Its failure is said in the store's terms. */
  read<Row>(text: string, parameters?: readonly Parameter[], timeoutMs?: number): Promise<readonly Row[]>
  /**
   * Does all of it or nothing, again where it was in the way of others, one transaction after the other. `work` may run
   * several times.
   */
  transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T>
  readonly plants: WriteQueue
  readonly versions: TokenVersions
  readonly column: Client['column']
  /** What reads and transacts before the store is open. */
  readonly client: Client
  /** From now on the store can be used. */
  open(): Promise<void>
  /** Ends all. Once more it does nothing. */
  close(): Promise<void>
  readonly isClosed: () => boolean
}

interface ConnectOptions extends ConnectionOptions {
  readonly isServer: boolean
  readonly observer: StoreObserver | undefined
}

/** Connects to nothing yet. */
export function connect(options: ConnectOptions, clocks: Clocks): Connections {
  const { monotonicMs } = clocks
  const client = createClient(options, options.isServer ? READERS_OF_SERVER : READERS_OF_COMMAND)
  let state: 'opening' | 'open' | 'closed' = 'opening'
  let closing: Promise<void> | undefined
  let reads = 0
  let lastTransaction: Promise<unknown> = Promise.resolve()

  const requireOpen = () => {
    // Cut requests may go on a little; what they ask for then is not there any more.
    if (state === 'closed') throw new AppError('store_busy')
    if (state === 'opening') throw new AppError('store_failed', { cause: 'the database has not been reached yet' })
  }

  const query = async <Row>(text: string, parameters: readonly Parameter[], timeoutMs: number) => {
    const deadlineMs = monotonicMs() + timeoutMs
    try {
      return await client.query<Row>(text, parameters, timeoutMs)
    } catch (error) {
      // Each connection notices only by its own failure that the server has restarted.
      const isWorthIt = !isUnreached(error) && (isLost(error) || isConflict(error))
      if (!isWorthIt || monotonicMs() >= deadlineMs) throw error
      return client.query<Row>(text, parameters, deadlineMs - monotonicMs())
    }
  }
  const read: Connections['read'] = async (text, parameters = [], timeoutMs = READ_TIMEOUT_MS) => {
    requireOpen()
    if (reads >= READS_MAX) throw new AppError('store_busy')
    reads++
    try {
      return await query(text, parameters, timeoutMs)
    } catch (error) {
      throw state === 'closed' ? new AppError('store_busy') : toAppError(error)
    } finally {
      reads--
    }
  }

  const transact: Connections['transaction'] = async (work) => {
    const deadlineMs = monotonicMs() + WRITE_TIMEOUT_MS
    for (;;) {
      requireOpen()
      try {
        return await client.transaction(work)
      } catch (error) {
        if (!isConflict(error) || monotonicMs() > deadlineMs) {
          throw toAppError(error, { outcomeIsUnknown: isLost(error) && !isUnreached(error) })
        }
        await Bun.sleep(Math.random() * RETRY_MS)
      }
    }
  }

  const writers = {
    create: openWriter('create', createClient(options, 1), clocks),
    delete: openWriter('delete', createClient(options, 1), clocks),
  }
  const existing = async (users: readonly UserId[]): Promise<ReadonlySet<UserId>> => {
    const rows = await read<[bigint]>('select id from plantstore.users where id = any($1::int8[])', [
      client.column(users, 'int8'),
    ])
    return new Set(rows.map(([id]) => Number(id)))
  }
  const plants = queueWrites({ writers, existing, monotonicMs, observer: options.observer })
  const versions = watchTokens(async () => {
    const [row] = await read<[bigint]>('select tokens_stamp from plantstore.counters')
    if (row === undefined) throw new TypeError('there are no counters')
    return row[0]
  }, monotonicMs)

  const close = async () => {
    state = 'closed'
    await plants.refuse(new AppError('store_busy'))
    await Promise.all([writers.create.close(), writers.delete.close(), client.close()])
  }

  return {
    read,
    transaction(work) {
      // In the order in which they were asked for.
      const done = lastTransaction.then(() => transact(work))
      lastTransaction = done.catch(() => undefined)
      return done
    },
    plants,
    versions,
    column: client.column,
    client,
    async open() {
      if (state === 'opening') state = 'open'
      await versions.renew()
    },
    close() {
      closing ??= close()
      return closing
    },
    isClosed: () => state === 'closed',
  }
}
