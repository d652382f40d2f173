import type { ListenOptions } from '../../src/cli/serve/server.ts'
import { type AppOptions, HTTP_DEADLINES } from '../../src/http/options.ts'
import { createLogger } from '../../src/log.ts'
import { stretched } from './slack.ts'

/** The options of the app with the defaults of `serve`, but that it logs nothing and is patient; and what a test wants otherwise. */
export const appOptions = (overrides: Pick<AppOptions, 'store'> & Partial<AppOptions>): AppOptions => ({
  recordUse: () => {},
  log: createLogger('error', { write: () => {} }),
  accessLog: false,
  logAddresses: true,
  statistics: undefined,
  draining: new AbortController(),
  readyAtMs: new Float64Array(1),
  provider: undefined,
  threads: 1,
  idleTimeout: 75_000,
  maxBody: 65536,
  page: true,
  docs: true,
  nowMs: Date.now,
  monotonicMs: () => performance.now(),
  deadlines: stretched(HTTP_DEADLINES),
  ...overrides,
})

/** Those of a server, with the defaults of `serve`. */
export const LISTEN_OPTIONS: ListenOptions = {
  idleTimeoutMs: 75_000,
  flag: '--listen',
  socketMode: 0o660,
  tls: undefined,
}
