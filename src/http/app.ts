import { Elysia, NotFoundError } from 'elysia'
import { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'
import type { Logger } from '../log.ts'
import { createTokenCache, type TokenCacheOptions } from './authentication.ts'
import { shareWith } from './cors.ts'
import { docs } from './docs/docs.ts'
import { createLimits, type LimitOptions, type Limits } from './limits.ts'
import { createListCache } from './lists/list-cache.ts'
import { answerCachedList } from './lists/list-plants.ts'
import { answerError, contextOf, observe } from './observe.ts'
import { operationNames, operationsOf, otherMethods } from './operations.ts'
import { plants } from './plants.ts'
import { type Lifecycle, probes } from './probes.ts'
import type { Connection } from './server.ts'
import type { RequestStatistics } from './statistics.ts'

/** What the service is made of. */
export interface AppOptions extends LimitOptions, TokenCacheOptions {
  readonly store: Pick<
    Store,
    | 'createPlant'
    | 'listPlants'
    | 'deletePlant'
    | 'plantsVersion'
    | 'hasOnlyGrown'
    | 'findToken'
    | 'tokensVersion'
    | 'checkReady'
  >
  readonly log: Logger
  readonly logsRequests: boolean
  /** Counts the requests; `undefined` if nobody asks for metrics. */
  readonly statistics: RequestStatistics | undefined
  readonly lifecycle: Lifecycle
  readonly usesTls: boolean
  /** The largest body that a request may send. */
  readonly maxBodyBytes: number
  /** The most plants in one answer; `undefined` means no limit. */
  readonly listMax: number | undefined
  /** Whether the API's documentation is served. */
  readonly servesDocs: boolean
  /** The origins whose pages may read answers. */
  readonly corsOrigins: readonly string[]
  /** Where clients reach this service, for the documentation. */
  readonly publicUrl: string | undefined
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs: () => number
}

/** The service: answers any request, and never rejects. */
export function createApp(
  options: AppOptions,
): (request: Request, connection?: Connection) => Response | Promise<Response> {
  const limits = createLimits(options)
  const app = routes(options, limits)
  options.statistics?.setOperations(operationNames(app.routes))
  const answer = observe(app.fetch, { ...options, limits, operationOf: operationsOf(app.routes) })
  return options.corsOrigins.length === 0 ? answer : shareWith(options.corsOrigins, answer)
}

/** The routes for the types of a client, as `@elysiajs/eden` reads them. */
export type App = ReturnType<typeof routes>

/** The Elysia app: all routes, and the hooks before them in their order. */
export function routes(options: AppOptions, limits: Limits) {
  const { store, log, lifecycle, monotonicMs, servesDocs, publicUrl } = options
  const parts = { ...options, limits, tokens: createTokenCache(options), lists: createListCache(options) }
  const api = plants(parts)
  const app = new Elysia({
    // A short Host would otherwise shift the path: one route would be taken for another.
    handler: { standardHostname: false },
    strictPath: true,
    normalize: false,
    // Each route is compiled at its first request: a start does not wait for that.
    precompile: false,
  })
    .onError(({ error, request }) => {
      // By class, because an error's own `code` would pass for Elysia's.
      const cause = error instanceof NotFoundError ? new AppError('path_unknown') : error
      return answerError(cause, contextOf(request), log)
    })
    .onRequest(requireOneHost)
    .onRequest(answerCachedList(parts))
    .use(servesDocs ? docs(api, publicUrl) : new Elysia())
    .use(probes(store, lifecycle, monotonicMs))
    .use(api)
  return app.use(otherMethods(app.routes))
}

/** The runtime joins several Host lines with a comma and a space, which no host name has. */
function requireOneHost({ request }: { readonly request: Request }): void {
  if (request.headers.get('host')?.includes(', ')) throw new AppError('several_hosts')
}
