import type { Address } from '../../domain/address.ts'
import { AppError, type ErrorKind } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import type { Lifecycle } from '../../http/probes.ts'
import type { Tls } from '../../http/tls.ts'
import type { Logger } from '../../log.ts'
import { engineOf } from '../../store/open.ts'
import type { Io } from '../io.ts'
import { firstToken } from './first-token.ts'

/** What will pass: a store that cannot be reached, that somebody has locked, or that has no space. It is asked again so often. */
const PASSING: readonly ErrorKind[] = ['store_failed', 'store_busy', 'store_full']
const RETRY_MS = 500

interface WelcomeOptions {
  readonly database: string
  readonly firstToken?: boolean
  readonly tlsCert?: string
  readonly tls: Tls | undefined
}

/**
 * Where the store has no token: makes one if that was asked for, or says how to. The server goes on with what will pass, and
 * this waits for it until the server drains.
 */
export async function welcome(lifecycle: Lifecycle, ...whom: Parameters<typeof greet>): Promise<void> {
  while (!lifecycle.isDraining) {
    try {
      return await greet(...whom)
    } catch (error) {
      if (!(error instanceof AppError) || !PASSING.includes(error.kind) || error.outcomeIsUnknown) throw error
    }
    await Bun.sleep(RETRY_MS)
  }
}

async function greet(
  store: Store,
  address: Address,
  log: Logger,
  options: WelcomeOptions,
  io: Pick<Io, 'tell' | 'randomBytes' | 'nowMs'>,
): Promise<void> {
  if (await store.hasTokens()) return
  const { tlsCert: path, tls } = options
  const certificate = path === undefined ? undefined : { path, host: tls?.host }
  if (options.firstToken) return io.tell((await firstToken(store, address, certificate, io)) ?? '')
  log.warn(
    `there is no token yet: plantstore token create --user NAME --database ${engineOf(options.database).location}`,
  )
}
