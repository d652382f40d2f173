import type { AppOptions } from '../../src/http/options.ts'
import type { ListenOptions } from '../../src/http/server.ts'
import { createLogger } from '../../src/log.ts'

/** The options of the app with the defaults of `serve`, but that it logs nothing; and what a test wants otherwise. */
export const appOptions = (overrides: Pick<AppOptions, 'store'> & Partial<AppOptions>): AppOptions => ({
  recordUse: () => {},
  log: createLogger('error', { write: () => {} }),
  logsRequests: false,
  logsAddresses: true,
  trustedProxies: [],
  statistics: undefined,
  lifecycle: { drain: new AbortController(), readyAtMs: new Float64Array(1) },
  provider: undefined,
  usesTls: false,
  idleTimeoutMs: 75_000,
  maxBodyBytes: 65536,
  listMax: undefined,
  rateLimit: undefined,
  cacheShare: 1,
  servesPage: true,
  servesDocs: true,
  corsOrigins: [],
  publicUrl: undefined,
  nowMs: Date.now,
  monotonicMs: () => performance.now(),
  ...overrides,
})

/** Those of a server, with the defaults of `serve`. */
export const LISTEN_OPTIONS: ListenOptions = {
  idleTimeoutMs: 75_000,
  flag: '--listen',
  socketMode: 0o660,
  tls: undefined,
}
