import { AppError } from '../../domain/error.ts'
import type { UserId } from '../../domain/token.ts'
import type { OpenOptions } from '../engine.ts'
import { queueGroups } from '../group-queue.ts'
import { type Client, type ConnectionOptions, createClient, type Parameter, type Query } from './driver.ts'
import { isConflict, isConnectionLost, isRepeatable, REPEAT_MS, repeat, toAppError } from './errors.ts'
import { announceChange, lockTokens, NOBODY, watchTokens } from './versions.ts'
import { keyOf, type PlantWrite, type WriteKind } from './writing/statements.ts'
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

type ConnectOptions = ConnectionOptions & Pick<OpenOptions, 'isServer' | 'quotaPlants' | 'observer'>

/** Prepares the connections. None is made before the first statement. */
export function connect(options: ConnectOptions) {
  const client = createClient(options, options.isServer ? CONNECTIONS_OF_SERVER : CONNECTIONS_OF_COMMAND)
  const [creates, deletes] = [createClient(options, 1), createClient(options, 1)]
  /** Why nothing can be read or written now. */
  let refusal: AppError | undefined = new AppError('store_failed', { cause: 'the database has not been reached yet' })
  let closing: Promise<unknown> | undefined

  const requireOpen = () => {
    if (refusal !== undefined) throw refusal
  }
  const read = openReads(client, requireOpen)
  const transaction = openTransactions(client, requireOpen)
  const { observer, quotaPlants } = options
  const queue = queueGroups({
    perform: {
      create: openWriter('create', creates, { observer, quotaPlants }),
      delete: openWriter('delete', deletes, { observer }),
    },
    observer,
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
     * Runs a transaction that creates or changes tokens or users. Only one such transaction of all processes runs at a time. The
     * work announces the user whose tokens it changes. A create announces `NOBODY`: no cache holds what does not exist, but the
     * stamp must tell a standby that lacks the create.
     */
    changeTokens<T>(work: (query: Query, announce: (user: UserId) => void) => Promise<T>): Promise<T> {
      let user = NOBODY
      return transaction(async (query) => {
        await lockTokens(query)
        const result = await work(query, (changed) => {
          user = changed
        })
        await announceChange(query, user)
        return result
      }).finally(() => changed([user]))
    },
    /** Writes a plant. All writes of plants share one queue: one statement writes a group of creates or of deletes. */
    async writePlant(kind: WriteKind, plant: PlantWrite): Promise<void> {
      requireOpen()
      await queue.write({
        lane: kind,
        content: plant,
        textLength: plant.values.reduce((sum, value) => sum + (value?.length ?? 0), 0),
        key: keyOf(plant),
        // After a delete with values, another delete may still find the plant.
        isLastOfKey: kind === 'delete' && plant.values.length > 0,
      })
    },
    load: queue.load,
    versions,
    /** For statements before the store is open. */
    client,
    /** From now on the store can be used. */
    async open(): Promise<void> {
      if (closing === undefined) refusal = undefined
      await renew()
    },
    /** Closes all connections. A second call does nothing. */
    async close(): Promise<void> {
      // A request that was cut at the end of the server may still ask for something.
      refusal = new AppError('store_busy')
      closing ??= queue.refuse(refusal).then(() => Promise.all([client, creates, deletes].map((each) => each.close())))
      await closing
    },
    isClosed: () => closing !== undefined,
  }
}

/** Limits how many reads run at once, and repeats a read whose connection was lost. `requireOpen` throws an `AppError`. */
function openReads(client: Client, requireOpen: () => void) {
  let reads = 0

  /** Runs one statement that reads, or that can be repeated like a read. Rejects with an `AppError` if the database fails. */
  return async <Row>(text: string, parameters: readonly Parameter[] = [], timeoutMs?: number) => {
    requireOpen()
    if (reads >= READS_MAX) throw new AppError('store_busy')
    reads++
    try {
      // After a restart of the server, each connection learns of it only by a statement that fails.
      return await repeat(REPEAT_MS, isRepeatable, (leftMs) =>
        client.query<Row>(text, parameters, timeoutMs ?? leftMs()),
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
  return <T>(work: (query: Query) => Promise<T>): Promise<T> => {
    const attempt = () => {
      requireOpen()
      return client.transaction(async (query) => {
        await query(`set local idle_in_transaction_session_timeout = '${STANDSTILL_MAX}'`)
        return work(query)
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
