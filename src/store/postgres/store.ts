import { describeAddress } from '../../database-url.ts'
import type { Store } from '../../domain/store.ts'
import type { AppError } from '../../error.ts'
import { type OpenOptions, STORE_DEADLINES } from '../database.ts'
import { connect } from './connections.ts'
import { AnswerTimeout, type ConnectionOptions } from './driver.ts'
import { isTemporary, toOpenError } from './errors.ts'
import { health } from './health.ts'
import { plants } from './plants.ts'
import { inspect, migrate } from './schema.ts'
import { tokens } from './tokens.ts'
import { users } from './users.ts'

const REACH_RETRY_MS = 200

/**
 * Opens the store in a database that speaks PostgreSQL's protocol. Creates the store if the database has none, and updates an
 * old schema. Rejects with `store_unusable`. With `isServer` it opens even if the database cannot be reached. If the database
 * proves unusable later, it calls `onFailure`.
 */
export async function openPostgresStore(
  connection: ConnectionOptions,
  onFailure: (error: AppError) => void,
  options: OpenOptions,
): Promise<Store> {
  const { isServer = false, durability = 'full', deadlines = STORE_DEADLINES, onCreated, onEvent } = options
  const { address } = connection
  const connections = connect(connection, options)
  /** The reason if the database cannot be used in time. */
  const delay = Promise.withResolvers<AppError>()
  const open = async (): Promise<void> => {
    while (!connections.isClosed()) {
      try {
        await inspect(connections.client, address, durability)
        const isCreated = await migrate(connections.client, address, options)
        if (isCreated) onCreated?.(describeAddress(address))
        return await connections.open()
      } catch (error) {
        const reason = toOpenError(address, error)
        if (!isServer || !isTemporary(error)) throw reason
        delay.resolve(reason)
      }
      await Bun.sleep(REACH_RETRY_MS)
    }
  }
  const opening = open()
  // A server listens while a long migration goes on.
  const notReady = new AnswerTimeout(`the schema is not ready after ${deadlines.answerMs} ms`)
  if (isServer) setTimeout(delay.resolve, deadlines.answerMs, toOpenError(address, notReady)).unref()
  try {
    const reason = await Promise.race([opening, delay.promise])
    if (reason !== undefined) {
      onEvent?.({ level: 'warn', message: `${reason.message} The server keeps trying.`, sizes: {} })
      opening.then(() => {
        if (!connections.isClosed()) onEvent?.({ level: 'info', message: 'the database has been reached', sizes: {} })
      }, onFailure)
    }
  } catch (error) {
    await connections.close()
    throw error
  }
  return {
    ...plants(connections),
    ...tokens(connections),
    ...users(connections),
    ...health(connections),
    close: connections.close,
  }
}
