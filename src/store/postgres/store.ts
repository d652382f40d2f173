import { describeAddress, isLocal, type PostgresAddress } from '../../domain/database-url.ts'
import type { AppError } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import type { OpenOptions, StoreEvent } from '../engine.ts'
import { type Connections, connect } from './connections.ts'
import { health } from './health.ts'
import { migrate } from './migrate.ts'
import { permanentError, toOpenError } from './open-errors.ts'
import { plants } from './plants.ts'
import { inspect } from './preflight.ts'
import { statistics } from './statistics.ts'
import { tokens } from './tokens.ts'
import { users } from './users.ts'

/** The pause between two attempts to reach a server. */
const REACH_RETRY_MS = 200

/**
 * Opens the store in a database that speaks PostgreSQL's protocol. Creates the store if the database has none, and updates an
 * old schema. Rejects with `store_unusable`. With `keepsTrying` it opens even if the server cannot be reached. If the database
 * proves unusable later, it calls `onFailure`.
 */
export async function openPostgresStore(
  address: PostgresAddress,
  onFailure: (error: AppError) => void,
  options: OpenOptions = {},
): Promise<Store> {
  const { keepsTrying = false, onEvent = () => {} } = options
  const connections = connect({
    address,
    passwordFile: options.passwordFile,
    prepares: !options.preparesNothing,
    isServer: options.writesInThread ?? false,
    observer: options.observer,
  })
  const open = () => prepare(connections, address, options)
  const plainText = plainTextWarning(address)
  if (plainText !== undefined) onEvent(plainText)
  try {
    await open()
  } catch (error) {
    const openError = toOpenError(address, error)
    if (!keepsTrying || permanentError(address, error) !== undefined) {
      await connections.close()
      throw openError
    }
    onEvent({ level: 'warn', message: `${openError.message} The server keeps trying.`, sizes: {} })
    void keepOpening(connections, open, address).then((failure) => {
      if (failure !== undefined) onFailure(failure)
      else if (!connections.isClosed()) onEvent({ level: 'info', message: 'the database has been reached', sizes: {} })
    })
  }
  return {
    ...plants(connections),
    ...tokens(connections),
    ...users(connections),
    ...health(connections),
    ...statistics(connections),
    close: connections.close,
  }
}

/** Warns the operator of a connection to another machine that others could read. */
export const plainTextWarning = (address: PostgresAddress): StoreEvent | undefined =>
  isLocal(address) || isEncrypted(address)
    ? undefined
    : {
        level: 'warn',
        message: `plants and tokens may go to ${describeAddress(address)} in plain text: use sslmode=verify-full`,
        sizes: {},
      }

/** Whether the connection is always encrypted. Only verify-full also proves that it leads to the right server. */
const isEncrypted = ({ sslMode }: PostgresAddress): boolean => sslMode !== 'disable' && sslMode !== 'prefer'

async function prepare(connections: Connections, address: PostgresAddress, options: OpenOptions): Promise<void> {
  const { mustExist = false, durability = 'full', onCreated } = options
  await inspect(connections.client, address, durability)
  const isCreated = await migrate(connections.client, { address, mustExist })
  if (isCreated) onCreated?.(describeAddress(address))
  await connections.open()
}

/** Tries until the store is open or closed. Resolves to an error if the store can never be opened. */
async function keepOpening(connections: Connections, open: () => Promise<void>, address: PostgresAddress) {
  while (!connections.isClosed()) {
    await Bun.sleep(REACH_RETRY_MS)
    try {
      return await open()
    } catch (error) {
      const failure = permanentError(address, error)
      if (failure !== undefined) return failure
    }
  }
}
