import { AppError } from '../../domain/error.ts'
import type { StoreObserver } from '../../domain/statistics.ts'
import type { UserId } from '../../domain/token.ts'
import { type Column, type ConnectionOptions, createClient } from './connection.ts'
import { openReads, type Read } from './reads.ts'
import { openTransactions, type Transact } from './transactions.ts'
import { lockTokens, watchTokens } from './versions.ts'
import { queueWrites } from './writing/queue.ts'
import { openWriter } from './writing/writer.ts'

/** Connections for reads and transactions. Each of the two writers has one more. */
const CONNECTIONS_OF_SERVER = 8
const CONNECTIONS_OF_COMMAND = 1

/** All connections of a store. Every read and every write passes through them. */
export type Connections = ReturnType<typeof connect>

interface ConnectOptions extends ConnectionOptions {
  readonly isServer: boolean
  readonly observer: StoreObserver | undefined
}

/** Prepares the connections. None is made before the first statement. */
export function connect(options: ConnectOptions) {
  const client = createClient(options, options.isServer ? CONNECTIONS_OF_SERVER : CONNECTIONS_OF_COMMAND)
  let state: 'opening' | 'open' | 'closed' = 'opening'
  let closing: Promise<void> | undefined

  const requireOpen = () => {
    // A request that was cut at the end of the server may still ask for something.
    if (state === 'closed') throw new AppError('store_busy')
    if (state === 'opening') throw new AppError('store_failed', { cause: 'the database has not been reached yet' })
  }
  const read = openReads(client, requireOpen)

  const writers = {
    create: openWriter('create', createClient(options, 1)),
    delete: openWriter('delete', createClient(options, 1)),
  }
  const existingUsers = (users: readonly UserId[]) => readUsers(read, client.column(users, 'int8'))
  const plants = queueWrites({ writers, existingUsers, observer: options.observer })
  const versions = watchTokens(() => readTokensStamp(read))
  const transaction = openTransactions(client, requireOpen)
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
    /** Runs a transaction that changes tokens or users. Only one such transaction of all processes runs at a time. */
    changeTokens,
    plants,
    tokensVersion: versions.tokens,
    column: client.column,
    /** For statements before the store is open. */
    client,
    /** From now on the store can be used. */
    async open(): Promise<void> {
      if (state === 'opening') state = 'open'
      await versions.renew()
    },
    /** Closes all connections. A second call does nothing. */
    close(): Promise<void> {
      closing ??= close()
      return closing
    },
    isClosed: () => state === 'closed',
  }
}

/** Which of these users exist. */
async function readUsers(read: Read, users: Column): Promise<ReadonlySet<UserId>> {
  const rows = await read<[bigint]>('select id from plantstore.users where id = any($1::int8[])', [users])
  return new Set(rows.map(([id]) => Number(id)))
}

async function readTokensStamp(read: Read): Promise<bigint> {
  const [row] = await read<[bigint]>('select tokens_stamp from plantstore.counters')
  if (row === undefined) throw new TypeError('the table plantstore.counters is empty')
  return row[0]
}
