import type { Address } from '../domain/address.ts'
import { describeDatabase } from '../domain/database-url.ts'
import { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'
import type { Tls } from '../http/tls.ts'
import type { Logger } from '../log.ts'
import { firstToken } from './first-token.ts'
import type { Io } from './io.ts'

/** How often a store that cannot be reached is asked again whether it has tokens. */
const REACH_RETRY_MS = 500

interface WelcomeOptions {
  readonly database: string
  readonly firstToken?: boolean
  readonly tlsCert?: string
  readonly tls: Tls | undefined
}

/** Where the store has no token, once it can be reached: makes one if that was asked for, or says how to. */
export async function welcome(
  store: Store,
  address: Address,
  log: Logger,
  options: WelcomeOptions,
  io: Pick<Io, 'tell' | 'randomBytes' | 'nowMs'>,
): Promise<void> {
  if (await hasTokens(store)) return
  const { tlsCert: path, tls } = options
  const certificate = path === undefined ? undefined : { path, host: tls?.host }
  if (options.firstToken) return io.tell((await firstToken(store, address, certificate, io)) ?? '')
  log.warn(
    `there is no token yet: plantstore token create --user NAME --database ${describeDatabase(options.database)}`,
  )
}

async function hasTokens(store: Store): Promise<boolean> {
  for (;;) {
    try {
      return await store.hasTokens()
    } catch (error) {
      if (!(error instanceof AppError) || error.kind !== 'store_failed') throw error
    }
    await Bun.sleep(REACH_RETRY_MS)
  }
}
