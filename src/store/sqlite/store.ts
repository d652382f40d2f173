import { OTHERS_SEEN_WITHIN_MS, type Store } from '../../domain/store.ts'
import { type Connections, joinEngine } from '../../engine/sqlite/connections.ts'
import { toOpenError } from '../../engine/sqlite/errors.ts'
import { openEngine } from '../../engine/sqlite/open.ts'
import type { StoreShare } from '../../engine/sqlite/writer.ts'
import { type AppError, misused } from '../../error.ts'
import type { OpenedStore, OpenOptions } from '../database.ts'
import { PLANT_FORMAT } from './format.ts'
import { health } from './health.ts'
import { plants } from './plants.ts'
import { tokens } from './tokens.ts'
import { users } from './users.ts'
import { PLANT_STORE, type Writes } from './writing/writes.ts'

/** `NamedDatabase.open` for a SQLite file. Creates the file if there is none, and migrates an older schema. */
export async function openSqliteStore(
  path: string,
  onFailure: (error: AppError) => void,
  options: OpenOptions = {},
): Promise<OpenedStore> {
  const { durability = 'full', isServer = false, quotaPlants, onEvent = () => {} } = options
  const { monotonicMs = performance.now.bind(performance) } = options
  if (durability === 'storage') {
    throw misused('--durability storage is for PostgreSQL only: name full or normal for a file.')
  }
  const startThread = isServer ? () => new Worker(new URL('./writer-thread.ts', import.meta.url).href) : undefined
  try {
    const opened = await openEngine<Writes>(PLANT_STORE, PLANT_FORMAT, path, onFailure, {
      ...options,
      ...{ durability, startThread, settings: { quotaPlants }, onEvent, monotonicMs },
      othersSeenWithinMs: OTHERS_SEEN_WITHIN_MS,
    })
    return { ...storeOf(opened), opened: opened.writer.opened, share: opened.share }
  } catch (error) {
    // To prepare the statements reads the schema once more.
    throw toOpenError(error, path)
  }
}

/** Uses a store that another thread of this process has opened, and closes last. `onFailure` is that of `open`. */
export function joinStore(
  share: StoreShare,
  onFailure: (error: AppError) => void,
  options: Pick<OpenOptions, 'observer' | 'threads'> & Required<Pick<OpenOptions, 'monotonicMs'>>,
): Store {
  try {
    return storeOf(joinEngine(share, onFailure, { ...options, othersSeenWithinMs: OTHERS_SEEN_WITHIN_MS }))
  } catch (error) {
    throw toOpenError(error, share.path)
  }
}

function storeOf(connections: Connections<Writes>): Store {
  return {
    ...plants(connections),
    ...tokens(connections),
    ...users(connections),
    ...health(connections),
    close: connections.close,
  }
}
