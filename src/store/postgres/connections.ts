// Tested in test/store/postgres/reads.test.ts.
import { queueGroups } from '../../engine/group-queue.ts'
import { AppError } from '../../error.ts'
import { type OpenOptions, STORE_DEADLINES, type StoreDeadlines } from '../database.ts'
import { type Client, type ConnectionOptions, createClient, type Parameter } from './driver.ts'
import { isRepeatable, repeat, toAppError } from './errors.ts'
import { openTokenChanges } from './token-changes.ts'
import { type TokenChanges, watchTokens } from './token-watch.ts'
import { keyOf, type PlantWrite } from './writing/statements.ts'
import { createGroupWriter } from './writing/writer.ts'

/** Connections for reads and transactions. Each of the two writers has one more. */
const CONNECTIONS_OF_SERVER = 8
const CONNECTIONS_OF_COMMAND = 1
/** How many reads may wait or be under way. Further ones are refused. */
export const READS_MAX = 4096
/** How long a read of whole tables may take. Only commands wait for such reads. */
export const READ_ALL_TIMEOUT_MS = 3_600_000

export type Connections = ReturnType<typeof connect>

type Options = OpenOptions & { readonly deadlines: StoreDeadlines }

/** Prepares all connections of a store. None is made before the first statement. What fails rejects with an `AppError`. */
export function connect(connection: ConnectionOptions, options: OpenOptions) {
  const { deadlines = STORE_DEADLINES } = options
  const connections = options.isServer ? CONNECTIONS_OF_SERVER : CONNECTIONS_OF_COMMAND
  const client = createClient(connection, connections, deadlines)
  /** Why nothing can be read or written now. */
  let refusal: AppError | undefined = new AppError('store_failed', { cause: 'the database has not been reached yet' })
  let closing: Promise<unknown> | undefined

  const requireOpen = () => {
    if (refusal !== undefined) throw refusal
  }
  const isClosed = () => closing !== undefined
  const { readStamp, requirePrimary } = watchStandbys(client, requireOpen, isClosed, { ...options, deadlines })
  const read = openReads(client, deadlines, requirePrimary)
  const { refresh, changed, ...versions } = watchTokens(readStamp)
  const { endWrites, ...writers } = openWriters(connection, requirePrimary, { ...options, deadlines })

  return {
    ...writers,
    quotaPlants: options.quotaPlants,
    deadlines,
    observer: options.observer,
    read,
    changeTokens: openTokenChanges(client, deadlines, requirePrimary, changed),
    versions,
    /** For statements before the store is open. */
    client,
    /** From now on the store can be used. */
    async open(): Promise<void> {
      if (closing === undefined) refusal = undefined
      await refresh()
    },
    /** Closes all connections after the groups that are under way. A second call does nothing. */
    async close(): Promise<void> {
      // A request that was cut at the end of the server may still ask for something.
      refusal = new AppError('store_busy')
      closing ??= endWrites(refusal).then(client.close)
      await closing
    },
    isClosed,
  }
}

/** Opens the writers. One writes groups of creates and puts, the other groups of deletes, each on a connection of its own. */
function openWriters(connection: ConnectionOptions, requirePrimary: () => void, options: Options) {
  const { quotaPlants, observer, deadlines } = options
  const [puts, deletes] = [createClient(connection, 1, deadlines), createClient(connection, 1, deadlines)]
  const queue = queueGroups({
    perform: {
      put: createGroupWriter(puts, { quotaPlants, observer, deadlines }),
      delete: createGroupWriter(deletes, { observer, deadlines }),
    },
    observer,
    deadlines,
  })
  return {
    load: queue.load,
    /** Writes a plant durably. A put resolves to whether it made the plant. */
    async writePlant(plant: PlantWrite): Promise<boolean> {
      requirePrimary()
      const { kind, values = [], expected } = plant
      const write = queue.write({
        lane: kind === 'delete' ? 'delete' : 'put',
        content: plant,
        textLength: [...values, ...(typeof expected === 'string' ? [] : expected)].join('').length,
        key: keyOf(plant),
        // After a write that finds certain values, others may find others.
        run: typeof expected === 'string' ? kind + expected : undefined,
      })
      const isMade = await write
      return isMade === true
    },
    /** Refuses further writes, and closes both connections after the groups that are under way. */
    async endWrites(refusal: AppError): Promise<void> {
      await queue.refuse(refusal)
      await Promise.all([puts.close(), deletes.close()])
    },
  }
}

/** After a stamp from a standby, so many in a row must come from the primary, with a pause before each. */
const PRIMARY_STAMPS = 10
const STAMP_PAUSE_MS = 500
/** Some databases lack the setting, and do not tell whether they are standbys. */
const SELECT_STAMP = `select tokens_stamp as stamp, token_changes as changes,
  coalesce(current_setting('in_hot_standby', true), 'off') as standby from plantstore.counters`

/** Reads stamps. After one from a standby, which may lack answered writes, a server's `requirePrimary` throws `store_failed`. */
function watchStandbys(client: Client, requireOpen: () => void, isClosed: () => boolean, options: Options) {
  const read = openReads(client, options.deadlines, requireOpen)
  let missingStamps = 0

  const readStamp = async () => {
    const [row] = await read<TokenChanges & { readonly standby: string }>(SELECT_STAMP)
    if (row === undefined) throw new TypeError('the table plantstore.counters is empty')
    if (row.standby === 'on' && options.isServer) void awaitPrimary(missingStamps > 0)
    return row
  }
  const awaitPrimary = async (isWaiting: boolean) => {
    missingStamps = PRIMARY_STAMPS
    if (isWaiting) return
    const message = 'a standby answers reads, so all requests get 503: lead this server to the primary alone'
    options.onEvent?.({ level: 'warn', message, sizes: {} })
    while (missingStamps > 0 && !isClosed()) {
      await Bun.sleep(STAMP_PAUSE_MS)
      const row = await readStamp().catch(() => undefined)
      missingStamps = row?.standby === 'off' ? missingStamps - 1 : PRIMARY_STAMPS
    }
  }
  const requirePrimary = () => {
    requireOpen()
    if (missingStamps > 0) throw new AppError('store_failed')
  }
  return { readStamp, requirePrimary }
}

/** Limits how many reads run at once, and repeats a read whose connection was lost. `requireOpen` throws an `AppError`. */
function openReads(client: Client, { repeatMs }: StoreDeadlines, requireOpen: () => void) {
  let reads = 0

  /** Runs one statement that reads, or that can be repeated like a read. Rejects with an `AppError` if the database fails. */
  return async <Row>(text: string, parameters: readonly Parameter[] = [], timeoutMs?: number) => {
    requireOpen()
    if (reads >= READS_MAX) throw new AppError('store_busy')
    reads++
    try {
      // After a restart of the server, each connection learns of it only by a statement that fails.
      return await repeat(repeatMs, isRepeatable, (leftMs) =>
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
