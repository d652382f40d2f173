import { AppError } from '../../domain/error.ts'
import type { StoreObserver } from '../../domain/statistics.ts'
import type { UserId } from '../../domain/token.ts'
import { type Client, type ConnectionOptions, createClient } from './connection.ts'
import type { Clocks } from './ledger.ts'
import { queueWrites, type WriteQueue } from './queue.ts'
import { openReads, type Read } from './reads.ts'
import { openTransactions, type Transact } from './transactions.ts'
import { lockTokens, type TokenVersions, watchTokens } from './versions.ts'
import { openWriter } from './writer.ts'

/** Connections for reads and transactions. Each of the two writers has one more. */
const CONNECTIONS_OF_SERVER = 8
const CONNECTIONS_OF_COMMAND = 1

/** All connections of a store. Every read and every write passes through them. */
export interface Connections {
  readonly read: Read
  readonly transaction: Transact
  /** Runs a transaction that changes tokens or users. Only one such transaction of all processes runs at a time. */
  readonly changeTokens: Transact
  readonly plants: WriteQueue
  readonly versions: TokenVersions
  readonly column: Client['column']
  /** For reads and transactions before the store is open. */
  readonly client: Client
  /** From now on the store can be used. */
  open(): Promise<void>
  /** Closes all connections. A second call does nothing. */
  close(): Promise<void>
  readonly isClosed: () => boolean
}

interface ConnectOptions extends ConnectionOptions {
  readonly isServer: boolean
  readonly observer: StoreObserver | undefined
}

/** Prepares the connections. None is made before the first statement. */
export function connect(options: ConnectOptions, clocks: Clocks): Connections {
  const { monotonicMs } = clocks
  const client = createClient(options, options.isServer ? CONNECTIONS_OF_SERVER : CONNECTIONS_OF_COMMAND)
  let state: 'opening' | 'open' | 'closed' = 'opening'
  let closing: Promise<void> | undefined

  const requireOpen = () => {
    // A request that was cut at the end of the server may still ask for something.
    if (state === 'closed') throw new AppError('store_busy')
    if (state === 'opening') throw new AppError('store_failed', { cause: 'the database has not been reached yet' })
  }
  const read = openReads({ client, requireOpen, monotonicMs })

  const existingUsers = async (users: readonly UserId[]): Promise<ReadonlySet<UserId>> => {
    const rows = await read<[bigint]>('select id from plantstore.users where id = any($1::int8[])', [
      client.column(users, 'int8'),
    ])
    return new Set(rows.map(([id]) => Number(id)))
  }
  const writers = {
    create: openWriter('create', createClient(options, 1), clocks),
    delete: openWriter('delete', createClient(options, 1), clocks),
  }
  const plants = queueWrites({ writers, existingUsers, monotonicMs, observer: options.observer })
  const versions = watchTokens(async () => {
    const [row] = await read<[bigint]>('select tokens_stamp from plantstore.counters')
    if (row === undefined) throw new TypeError('the table plantstore.counters is empty')
    return row[0]
  }, monotonicMs)

  const transaction = openTransactions({ client, requireOpen, monotonicMs })
  const changeTokens: Transact = (work) =>
    transaction(async (inside) => {
      await lockTokens(inside)
      return work(inside)
    }).finally(versions.changed)

  const close = async () => {
    state = 'closed'
    await plants.refuse(new AppError('store_busy'))
    await Promise.all([writers.create.close(), writers.delete.close(), client.close()])
  }

  return {
    read,
    transaction,
    changeTokens,
    plants,
    versions,
    column: client.column,
    client,
    async open() {
      if (state === 'opening') state = 'open'
      await versions.renew()
    },
    close: () => (closing ??= close()),
    isClosed: () => state === 'closed',
  }
}
