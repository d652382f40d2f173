import { AppError } from '../../domain/error.ts'
import type { UserId } from '../../domain/token.ts'
import type { OpenOptions } from '../engine.ts'
import { type Client, type ConnectionOptions, createClient, type Parameter, type Transaction } from './driver.ts'
import { isConflict, isConnectionLost, REPEAT_MS, repeat, toAppError } from './errors.ts'
import { announceChange, lockTokens, NOBODY, watchTokens } from './versions.ts'
import { queueWrites } from './writing/queue.ts'
import { openWriter } from './writing/writer.ts'

/** Connections for reads and transactions. Each of the two writers has one more. */
const CONNECTIONS_OF_SERVER = 8
const CONNECTIONS_OF_COMMAND = 1
/** How many reads may wait or be under way. Further ones are refused. */
export const READS_MAX = 4096
/** How long a read of whole tables may take. Only commands wait for such reads. */
export const READ_ALL_TIMEOUT_MS = 3_600_000

/** All connections of a store. Every read and every write passes through them. */
export type Connections = ReturnType<typeof connect>

type Announce = (user: UserId) => Promise<void>

type ConnectOptions = ConnectionOptions & Pick<OpenOptions, 'isServer' | 'quotaPlants' | 'observer'>

/** Prepares the connections. None is made before the first statement. */
export function connect(options: ConnectOptions) {
  const client = createClient(options, options.isServer ? CONNECTIONS_OF_SERVER : CONNECTIONS_OF_COMMAND)
  const [creates, deletes] = [createClient(options, 1), createClient(options, 1)]
  let isOpen = false
  let closing: Promise<unknown> | undefined

  const requireOpen = () => {
    // A request that was cut at the end of the server may still ask for something.
    if (closing !== undefined) throw new AppError('store_busy')
    if (!isOpen) throw new AppError('store_failed', { cause: 'the database has not been reached yet' })
  }
  const read = openReads(client, requireOpen)
  const transaction = openTransactions(client, requireOpen)
  const plants = queueWrites({
    writers: { create: openWriter('create', creates, options.quotaPlants), delete: openWriter('delete', deletes) },
    observer: options.observer,
    requireOpen,
  })
  const { renew, changed, ...versions } = watchTokens(async () => {
    const [row] = await read<[bigint, string]>('select tokens_stamp, token_changes from plantstore.counters')
    if (row === undefined) throw new TypeError('the table plantstore.counters is empty')
    return row
  })

  return {
    read,
    transaction,
    /**
     * Runs a transaction that creates or changes tokens or users. Only one such transaction of all processes runs at a time. It
     * announces the users whose tokens it changes. A create announces `NOBODY`: no cache holds what does not exist, but the stamp must
     * tell a standby that lacks the create.
     */
    changeTokens<T>(work: (inside: Transaction, announce: Announce) => Promise<T>): Promise<T> {
      const users = new Set<UserId>()
      return transaction(async (inside) => {
        await lockTokens(inside)
        const result = await work(inside, (user) => {
          users.add(user)
          return announceChange(inside, user)
        })
        if (users.size === 0) await announceChange(inside, NOBODY)
        return result
      }).finally(() => changed(users))
    },
    plants,
    versions,
    column: client.column,
    /** For statements before the store is open. */
    client,
    /** From now on the store can be used. */
    async open(): Promise<void> {
      isOpen = true
      await renew()
    },
    /** Closes all connections. A second call does nothing. */
    async close(): Promise<void> {
      closing ??= plants
        .refuse(new AppError('store_busy'))
        .then(() => Promise.all([client, creates, deletes].map((each) => each.close())))
      await closing
    },
    isClosed: () => closing !== undefined,
  }
}

/** Limits how many reads run at once, and repeats a read whose connection was lost. `requireOpen` throws an `AppError`. */
function openReads(client: Client, requireOpen: () => void) {
  let reads = 0
  // After a restart of the server, each connection learns of it only by a statement that fails.
  const isRepeatable = (error: unknown) => isConflict(error) || isConnectionLost(error)

  /** Runs one statement that reads, or that can be repeated like a read. Rejects with an `AppError` if the database fails. */
  return async <Values>(text: string, parameters: readonly Parameter[] = [], timeoutMs?: number) => {
    requireOpen()
    if (reads >= READS_MAX) throw new AppError('store_busy')
    reads++
    try {
      return await repeat(REPEAT_MS, isRepeatable, (leftMs) =>
        client.query<Values>(text, parameters, timeoutMs ?? leftMs()),
      )
    } catch (error) {
      // The store may have been closed meanwhile, which is the better reason.
      requireOpen()
      throw toAppError(error)
    } finally {
      reads--
    }
  }
}

/**
 * The database ends a transaction whose process stands still for so long. It is less than `ANSWER_TIMEOUT_MS`: the others, who wait
 * for its locks, still have time then.
 */
const STANDSTILL_MAX = '3s'

/** Runs transactions one after the other, in the order in which they were asked for. `requireOpen` throws an `AppError`. */
function openTransactions(client: Client, requireOpen: () => void) {
  let last: Promise<unknown> = Promise.resolve()

  /** Does all of the work or nothing. Repeats it after a conflict, so `work` may run several times. */
  return <T>(work: (inside: Transaction) => Promise<T>): Promise<T> => {
    const attempt = () => {
      requireOpen()
      return client.transaction(async (inside) => {
        await inside.query(`set local idle_in_transaction_session_timeout = '${STANDSTILL_MAX}'`)
        return work(inside)
      })
    }
    const done = last
      .then(() => repeat(REPEAT_MS, isConflict, attempt))
      .catch((error) => {
        throw toAppError(error, { outcomeIsUnknown: isConnectionLost(error) })
      })
    last = done.catch(() => undefined)
    return done
  }
}
