import { describeAddress, isLocal, type PostgresAddress } from '../../domain/database-url.ts'
import { AppError } from '../../domain/error.ts'
import { readFailure } from '../../domain/read-failure.ts'
import type { Durability, Store } from '../../domain/store.ts'
import { type OpenOptions, type StoreEvent, unusable } from '../opening.ts'
import { type Connections, connect } from './connections.ts'
import { isTemporary } from './errors.ts'
import { health } from './health.ts'
import { migrate } from './migrate.ts'
import { plants } from './plants.ts'
import { inspect } from './preflight.ts'
import { statistics } from './statistics.ts'
import { tokens } from './tokens.ts'
import { users } from './users.ts'

/** How often it is tried to reach a server that could not be reached. */
const REACH_RETRY_MS = 200

/**
 * The store in a database of a server that speaks PostgreSQL's protocol. Creates it where there is none, brings it up to
 * date where it is older. Rejects with `store_unusable` where neither can be. With `keepsTrying` a server that cannot be
 * reached is no reason to: then `onFailure` is told if it turns out to be unusable once it is reached.
 */
export async function openPostgresStore(
  address: PostgresAddress,
  onFailure: (error: AppError) => void,
  options: OpenOptions = {},
): Promise<Store> {
  const { mustExist = false, durability = 'full', keepsTrying = false, onEvent = () => {}, onCreated } = options
  const connections = connect(
    {
      address,
      passwordFile: options.passwordFile,
      prepares: !options.preparesNothing,
      isServer: options.writesInThread ?? false,
      observer: options.observer,
    },
    { monotonicMs: () => performance.now(), nowMs: Date.now },
  )
  const open = () => prepare(connections, address, { mustExist, durability, onCreated })
  const plainText = plainTextWarning(address)
  if (plainText !== undefined) onEvent(plainText)
  try {
    await open()
  } catch (error) {
    const reason = cannotUse(address, error)
    if (!keepsTrying || reason !== undefined) {
      await connections.close()
      throw toOpenError(address, error)
    }
    onEvent({
      level: 'warn',
      message: `${cannotReach(address, error).message} It is tried again and again.`,
      sizes: {},
    })
    void keepOpening(connections, open, address).then((failure) => {
      if (failure !== undefined) onFailure(failure)
      else if (!connections.isClosed()) onEvent({ level: 'info', message: 'the database is reached', sizes: {} })
    })
  }
  return assemble(connections)
}

/** What the operator should know of a way to another machine that is not encrypted, or need not be. */
export const plainTextWarning = (address: PostgresAddress): StoreEvent | undefined =>
  isLocal(address) || isEncrypted(address)
    ? undefined
    : {
        level: 'warn',
        message: `plants and tokens may go to ${describeAddress(address)} in plain text: use sslmode=verify-full`,
        sizes: {},
      }

const assemble = (connections: Connections): Store => ({
  ...plants(connections),
  ...tokens(connections),
  ...users(connections),
  ...health(connections),
  ...statistics(connections),
  close: connections.close,
})

interface PrepareOptions {
  readonly mustExist: boolean
  readonly durability: Durability
  readonly onCreated: OpenOptions['onCreated']
}

async function prepare(connections: Connections, address: PostgresAddress, options: PrepareOptions) {
  const { mustExist, durability, onCreated } = options
  await inspect(connections.client, address, durability)
  const isCreated = await migrate(connections.client, { address, mustExist })
  if (isCreated) onCreated?.(describeAddress(address))
  await connections.open()
}

/** Resolves once the store is open or closed, or to why it will never be open. */
async function keepOpening(connections: Connections, open: () => Promise<void>, address: PostgresAddress) {
  while (!connections.isClosed()) {
    await Bun.sleep(REACH_RETRY_MS)
    try {
      return await open()
    } catch (error) {
      const reason = cannotUse(address, error)
      if (reason !== undefined) return reason
    }
  }
}

/** Why a store cannot be opened, be it just now. */
export const toOpenError = (address: PostgresAddress, error: unknown): AppError =>
  cannotUse(address, error) ?? cannotReach(address, error)

/** Whether nobody on the way can read along; who is at the other end is known with verify-full alone. */
const isEncrypted = ({ sslMode }: PostgresAddress): boolean => sslMode !== 'disable' && sslMode !== 'prefer'

/** Why a store can never be used as it is; nothing where that may change by itself. */
function cannotUse(address: PostgresAddress, error: unknown): AppError | undefined {
  if (error instanceof AppError && error.kind === 'store_unusable') return error
  if (isTemporary(error)) return undefined
  return unusable(`The database ${describeAddress(address)} cannot be used: ${reasonOf(error)}.`, error)
}

const cannotReach = (address: PostgresAddress, error: unknown): AppError =>
  unusable(`The database ${describeAddress(address)} cannot be reached: ${reasonOf(error)}.`, error)

const reasonOf = (error: unknown): string => {
  const cause = error instanceof AppError && error.cause !== undefined ? error.cause : error
  if (!(cause instanceof Error)) return String(cause)
  // A file with the password or with certificates.
  if ('path' in cause) return `the file ${cause.path} cannot be read, because ${readFailure(cause)}`
  return cause.message.replace(/\.$/, '')
}
