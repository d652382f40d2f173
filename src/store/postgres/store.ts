import { describeAddress, type PostgresAddress } from '../../domain/database-url.ts'
import type { AppError } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import type { OpenOptions } from '../engine.ts'
import { connect } from './connections.ts'
import { ANSWER_TIMEOUT_MS, AnswerTimeout } from './driver.ts'
import { isTemporary, toOpenError } from './errors.ts'
import { health } from './health.ts'
import { plants } from './plants.ts'
import { inspect, migrate } from './schema.ts'
import { tokens } from './tokens.ts'
import { users } from './users.ts'

/** The pause between two attempts to reach a server. */
const REACH_RETRY_MS = 200

/**
 * Opens the store in a database that speaks PostgreSQL's protocol. Creates the store if the database has none, and updates an
 * old schema. Rejects with `store_unusable`. With `isServer` it opens even if the database cannot be reached. If the database
 * proves unusable later, it calls `onFailure`.
 */
export async function openPostgresStore(
  address: PostgresAddress,
  onFailure: (error: AppError) => void,
  options: OpenOptions,
): Promise<Store> {
  const { isServer = false, mustExist = false, durability = 'full', onCreated, onEvent } = options
  const connections = connect({ address, ...options })
  const open = async () => {
    await inspect(connections.client, address, durability)
    const isCreated = await migrate(connections.client, address, mustExist)
    if (isCreated) onCreated?.(describeAddress(address))
    await connections.open()
  }
  const keepOpening = async (opening: Promise<void>) => {
    for (let attempt = opening; !connections.isClosed(); attempt = open()) {
      try {
        await attempt
        onEvent?.({ level: 'info', message: 'the database has been reached', sizes: {} })
        return
      } catch (error) {
        if (!isTemporary(error)) return onFailure(toOpenError(address, error))
      }
      await Bun.sleep(REACH_RETRY_MS)
    }
  }
  const opening = open()
  try {
    // A server listens while a long migration goes on.
    await (isServer ? Promise.race([opening, rejectLater()]) : opening)
  } catch (error) {
    const openError = toOpenError(address, error)
    if (!isServer || !isTemporary(error)) {
      await connections.close()
      throw openError
    }
    onEvent?.({ level: 'warn', message: `${openError.message} The server keeps trying.`, sizes: {} })
    void keepOpening(opening)
  }
  return {
    ...plants(connections),
    ...tokens(connections),
    ...users(connections),
    ...health(connections),
    ...connections.versions,
    close: connections.close,
  }
}

async function rejectLater(): Promise<never> {
  await Bun.sleep(ANSWER_TIMEOUT_MS)
  throw new AnswerTimeout(`the schema is not ready after ${ANSWER_TIMEOUT_MS} ms`)
}
