import { listen } from '../../../src/cli/serve/server.ts'
import { readCertificate, readTls } from '../../../src/cli/serve/tls.ts'
import type { Store } from '../../../src/domain/store.ts'
import { createApp } from '../../../src/http/app.ts'
import { identityProvider, type ProviderPolicy } from '../../../src/http/jwt/provider.ts'
import { type AppOptions, HTTP_DEADLINES } from '../../../src/http/options.ts'
import { createLogger } from '../../../src/log.ts'
import type { OpenOptions, StoreDeadlines } from '../../../src/store/database.ts'
import { appOptions, LISTEN_OPTIONS } from '../../support/app.ts'
import type { TlsFiles } from '../../support/certificates.ts'
import { EXECUTABLE, serve } from '../../support/executable.ts'
import { FAILING_STORE, type OpenStore, POSTGRES_STORES, SQLITE_STORES } from '../../support/stores.ts'

/** How a service under test is reached. */
export interface Transport {
  readonly name: string
  /** Opens the store behind it; a SQLite database in a folder of its own if left out. */
  readonly open?: (options: StoreOptions) => Promise<ServiceStore>
  /** Within this time after a command has ended, the service shows what it changed; at once if left out. */
  readonly othersSeenWithinMs?: number
  start(store: Store, database: string, options: ServiceOptions): Promise<Reachable>
}

/** What a test may want otherwise of the store. */
type StoreOptions = Pick<OpenOptions, 'quotaPlants' | 'deadlines'>

type AppSetting = 'maxBody' | 'listMax' | 'publicUrl' | 'docs' | 'page' | 'rateLimit' | 'idleTimeout' | 'corsOrigin'

/** What a test may want otherwise than the default. */
export interface ServiceOptions extends Pick<StoreOptions, 'quotaPlants'>, Partial<Pick<AppOptions, AppSetting>> {
  readonly tls?: TlsFiles
  /** The path of a unix socket to listen at, instead of a port. */
  readonly socketPath?: string
  /** Those of the store, for a test that is about them; stretched if left out. The executable cannot have any. */
  readonly storeDeadlines?: StoreDeadlines
  /** The identity provider whose JWTs are accepted. */
  readonly jwt?: ProviderPolicy
  /** Methods that take the place of the store's. The executable cannot have any. */
  readonly overrideStore?: (store: Store) => Partial<Store>
  /** Options that no flag sets. The executable cannot have any. */
  readonly app?: Partial<AppOptions>
}

interface Reachable {
  fetch(path: string, init: RequestInit): Promise<Response>
  /** The port of its socket, if it has one. */
  readonly port: number | undefined
  /** All that was logged so far. */
  logs(): string
  stop(): Promise<void>
}

const inProcess: Transport = {
  name: 'in process',
  async start(store, _database, options) {
    const { app, logs } = assemble(store, options)
    return {
      async fetch(path, init) {
        const response = await app(new Request(`http://localhost${path}`, init))
        return init.method === 'HEAD' ? withoutBody(response) : response
      },
      port: undefined,
      logs,
      stop: async () => {},
    }
  },
}

/** What the runtime makes of an answer to HEAD. */
async function withoutBody({ status, headers, body }: Response): Promise<Response> {
  const { byteLength } = await new Response(body).bytes()
  if (byteLength > 0) headers.set('content-length', String(byteLength))
  return new Response(null, { status, headers })
}

const overTcp: Transport = {
  name: 'over TCP',
  async start(store, _database, options) {
    // As the executable has them.
    const { app, logs } = assemble(store, { ...options, app: { deadlines: HTTP_DEADLINES, ...options.app } })
    const tls = options.tls && readTls(options.tls.certPath, options.tls.keyPath)
    const { socketPath, idleTimeout: idleTimeoutMs = LISTEN_OPTIONS.idleTimeoutMs } = options
    const at = socketPath === undefined ? { host: '127.0.0.1', port: 0 } : { socketPath }
    const server = await listen(at, app, { ...LISTEN_OPTIONS, idleTimeoutMs, tls })
    const { url } = server
    return {
      fetch: directTo(url, options),
      port: Number(new URL(url).port),
      logs,
      stop: async () => void server.kill(),
    }
  },
}

const executable: Transport = {
  name: 'executable',
  async start(_store, database, options) {
    if (options.overrideStore ?? options.app) throw new Error('the executable takes flags alone')
    const server = await serve(database, flagsOf(options))
    return {
      fetch: directTo(server.url, options),
      port: server.port,
      logs: server.stdout,
      stop: server.kill,
    }
  },
}

/** Sends requests to a server. Trusts the server's own certificate, and no other. */
const directTo =
  (url: string, { tls, socketPath: unix }: ServiceOptions): Reachable['fetch'] =>
  (path, init) =>
    fetch((unix === undefined ? url : 'http://localhost') + path, {
      ...init,
      ...(tls && { tls: { ca: readCertificate(tls.certPath).cert } }),
      ...(unix !== undefined && { unix }),
    })

/** The same options as flags of `serve`. */
const flagsOf = (options: ServiceOptions): string[] => [
  ...flag('--max-body', options.maxBody, (bytes) => `${bytes}B`),
  ...flag('--list-max', options.listMax),
  ...flag('--public-url', options.publicUrl),
  ...(options.docs === false ? ['--no-docs'] : []),
  ...(options.page === false ? ['--no-page'] : []),
  ...flag('--quota-plants', options.quotaPlants),
  ...flag('--rate-limit', options.rateLimit, ({ requests, periodMs }) => `${requests}/${UNIT_OF_MS[periodMs]}`),
  ...flag('--idle-timeout', options.idleTimeout, (ms) => `${ms / 1000}s`),
  ...flag('--cors-origin', options.corsOrigin, (origins) => origins.join(',')),
  ...flag('--jwt-issuer', options.jwt?.issuer),
  ...flag('--jwt-audience', options.jwt?.audience),
  ...flag('--jwt-keys', options.jwt?.keyFile),
  ...flag('--jwt-default-scope', options.jwt?.defaultScope),
  ...flag('--jwt-client-id', options.jwt?.client?.clientId),
  ...(options.jwt?.client?.parameters ?? []).flatMap((each) => ['--jwt-request-param', each.join('=')]),
  ...flag('--tls-cert', options.tls?.certPath),
  ...flag('--tls-key', options.tls?.keyPath),
  ...flag('--listen', options.socketPath, (path) => `unix:${path}`),
]

const flag = <T>(name: string, value: T | undefined, write: (value: T) => string = String): string[] =>
  value === undefined ? [] : [name, write(value)]

const UNIT_OF_MS: Readonly<Record<number, string>> = { 1000: 's', 60000: 'm', 3600000: 'h' }

/** Only the source can be given a store that fails, or a clock. */
export const IN_PROCESS: readonly Transport[] = EXECUTABLE === undefined ? [inProcess] : []
/** The same over a socket. */
export const OVER_TCP: readonly Transport[] = EXECUTABLE === undefined ? [overTcp] : []
const THROUGH_EXECUTABLE: readonly Transport[] = EXECUTABLE === undefined ? [] : [executable]

/** For what only bytes on a connection can show. The check runs test/http/socket against the executable alone. */
export const SOCKET_TRANSPORTS = [...OVER_TCP, ...THROUGH_EXECUTABLE]
/** For what only files can show. */
export const SQLITE_TRANSPORTS = [...IN_PROCESS, ...THROUGH_EXECUTABLE]
/** For all else: the source on each database, or the executable. */
export const TRANSPORTS: readonly Transport[] = [
  ...SQLITE_TRANSPORTS,
  ...(EXECUTABLE === undefined ? POSTGRES_STORES.map((store) => ({ ...overTcp, ...store })) : []),
]

/** Each store behind a socket. The executable decides by itself how it writes to SQLite. */
export const STORES_ON_SOCKETS = SOCKET_TRANSPORTS.flatMap((transport) =>
  [...SQLITE_STORES.slice(transport === executable ? 1 : 0), ...POSTGRES_STORES].map((store) => ({
    ...transport,
    ...store,
    name: `${transport.name}, ${store.name}`,
  })),
)

export type ServiceStore = Pick<OpenStore, 'store' | 'database' | 'reopen'> & AsyncDisposable

/** Opens a SQLite database in a folder of its own. */
export const openDatabase = (options: StoreOptions = {}): Promise<ServiceStore> => FAILING_STORE.open(options)

/** The app with all that it logs. */
function assemble(store: Store, { overrideStore, app, jwt, ...options }: ServiceOptions) {
  let lines = ''
  const write = (line: string) => {
    lines += line
  }
  const parts = appOptions({
    store: { ...store, ...overrideStore?.(store) },
    log: createLogger('debug', { write }),
    accessLog: true,
    ...(options.tls !== undefined && { tlsCert: options.tls.certPath }),
    ...options,
    ...app,
  })
  return {
    app: createApp(jwt === undefined ? parts : { ...parts, provider: identityProvider(jwt, parts) }),
    logs: () => lines,
  }
}
