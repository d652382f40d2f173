// Tested in test/fault/sigterm.test.ts.
import type { Address } from '../../address.ts'
import type { Settings } from '../../config.ts'
import { createApp } from '../../http/app.ts'
import type { AppOptions } from '../../http/options.ts'
import { recordTokenUses } from '../../http/token-uses.ts'
import { listen, type RunningServer, type Sharing } from './server.ts'
import type { Tls } from './tls.ts'

/** This much of --drain is left for closing the store and for the last log lines. */
export const closeMsOf = (drainMs: number): number => Math.min(1000, drainMs / 4)

/** The options of `serve`, as far as nobody has to read a file or to ask the system any more. */
export interface ServeOptions extends Settings {
  /** The certificate and the key of the server, the latest ones. Without them it serves plain HTTP. */
  tls: Tls | undefined
  readonly threads: number
  /** Whether the lines of the log have colours; `undefined` for JSON. */
  readonly hasColours: boolean | undefined
}

/** What a thread that answers requests has opened or made for itself. */
export type ThreadServices = Omit<AppOptions, keyof ServeOptions | 'recordUse' | 'provider'>

/** How long a thread may take until it answers no more, and how long of that it takes new connections. */
export interface Drain {
  readonly drainMs: number
  readonly waitMs: number
}

/** No thread listens so late after the first one, unless something has failed. */
const LISTEN_MAX_WAIT_MS = 1000

/**
 * Blocks this thread, which listens now, until so many do. Threads accept connections in their event loops: the first one could
 * take the descriptors that others need to listen.
 */
export function waitForAll(listening: Int32Array, count: number): void {
  Atomics.add(listening, 0, 1)
  Atomics.notify(listening, 0)
  for (let now = Atomics.load(listening, 0); now < count; now = Atomics.load(listening, 0))
    if (Atomics.wait(listening, 0, now, LISTEN_MAX_WAIT_MS) === 'timed-out') return
}

export type HttpService = Awaited<ReturnType<typeof prepareHttpService>>

/** Prepares to answer requests in this thread, which afterwards needs descriptors for its listener and for connections alone. */
export async function prepareHttpService(options: ServeOptions, services: ThreadServices) {
  const { store, log, draining, nowMs } = services
  const { recordUse, flush, stop: stopFlushing } = recordTokenUses(store, log, nowMs)
  const provider = await openProvider(options, services)
  const accessLog = options.accessLog && log.isLevelEnabled('info')
  const app = createApp({ ...options, ...services, accessLog, provider, recordUse })
  const listenWith = (tls: Tls | undefined, at: Address, sharing: Sharing) =>
    listen(at, app, { idleTimeoutMs: options.idleTimeout, flag: '--listen', socketMode: 0o660, tls, sharing })
  let server: RunningServer
  let renewed: RunningServer | undefined
  const running = new Set<RunningServer>()

  return {
    /** Listens at an address that is this thread's own, or that it shares with other threads. */
    async listen(address: Address, sharing: Sharing): Promise<RunningServer> {
      server = await listenWith(options.tls, address, sharing)
      running.add(server)
      return server
    },
    /** Listens with a renewed certificate, too. Resolves to whether it does. */
    async prepare(tls: Tls): Promise<boolean> {
      if (draining.signal.aborted) return false
      renewed = await listenWith(tls, server.address, 'follower').catch(() => undefined)
      if (renewed !== undefined) running.add(renewed)
      return renewed !== undefined
    },
    /** Goes on with the renewed certificate alone, or with the old one. Requests in progress are answered. */
    settle(isRenewed: boolean): void {
      if (renewed === undefined) return
      const old = isRenewed ? server : renewed
      if (isRenewed) server = renewed
      renewed = undefined
      void old.stop().then(() => running.delete(old))
    },
    /**
     * Waits until requests in progress are answered, and cuts those that take longer than `drainMs` allows. Returns how many were
     * cut. Within that time, the server takes new connections for `waitMs`: until load balancers have noticed.
     */
    async stop({ drainMs, waitMs }: Drain): Promise<number> {
      draining.abort()
      stopFlushing()
      // While connections arrive, the runtime accepts them and runs no timer. While the server drains, each answer closes its
      // connection and clients open new ones. So without a wait, no timer may come before the listener is closed.
      if (waitMs > 0) await Bun.sleep(waitMs)
      const leftMs = Math.max(0, drainMs - waitMs - closeMsOf(drainMs))
      const servers = [...running]
      const stopped = Promise.all(servers.map((each) => each.stop())).then(() => true)
      const isOver = await Promise.race([stopped, Bun.sleep(leftMs).then(() => false)])
      return isOver ? 0 : servers.reduce((cut, each) => cut + each.kill(), 0)
    },
    /** Writes the uses of tokens that are not written yet. */
    flush,
  }
}

/** Only a server with an identity provider loads the code of JWTs. */
async function openProvider(options: ServeOptions, services: ThreadServices) {
  const { jwtIssuer: issuer, jwtAudience: audience, jwtKeys: keyFile, jwtDefaultScope: defaultScope } = options
  const { jwtClientId: clientId, jwtRequestParam: parameters = [] } = options
  if (issuer === undefined || audience === undefined) return undefined
  const { identityProvider } = await import('../../http/jwt/provider.ts')
  const client = clientId === undefined ? undefined : { clientId, parameters }
  return identityProvider({ issuer, audience, keyFile, defaultScope, client }, services)
}
