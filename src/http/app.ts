import { Elysia, NotFoundError } from 'elysia'
import { AppError } from '../domain/error.ts'
import type { Store } from '../domain/store.ts'
import type { Token } from '../domain/token.ts'
import type { Logger } from '../log.ts'
import { createTokenCache, type TokenCache } from './authentication.ts'
import { shareWith } from './cors.ts'
import { docs } from './docs/docs.ts'
import { createLimits, type Limits, type RateLimit } from './limits.ts'
import { createListCache, type ListCache } from './lists/list-cache.ts'
import { answerCachedList } from './lists/list-plants.ts'
import { answerError, contextOf, observe } from './observe.ts'
import { operationNames, operationsOf, otherMethods } from './operations.ts'
import { plants } from './plants.ts'
import { type Lifecycle, probes } from './probes.ts'
import type { Handle } from './server.ts'
import type { RequestStatistics } from './statistics.ts'

/** What the service is made of. `undefined` means that a limit is off, or that nobody asks for it. */
export interface AppOptions {
  readonly store: Store
  /** Called with every token that is accepted. */
  readonly recordUse: (token: Token) => void
  readonly log: Logger
  readonly logsRequests: boolean
  readonly statistics: RequestStatistics | undefined
  readonly lifecycle: Lifecycle
  readonly usesTls: boolean
  /** The largest body that a request may send. */
  readonly maxBodyBytes: number
  /** The most plants in one answer. */
  readonly listMax: number | undefined
  readonly rateLimit: RateLimit | undefined
  /** The most requests under way, from the acceptance of the token to the end of the answer. */
  readonly maxInFlight: number | undefined
  readonly servesDocs: boolean
  /** The origins whose pages may read answers. */
  readonly corsOrigins: readonly string[]
  /** Where clients reach this service, for the documentation. */
  readonly publicUrl: string | undefined
  /** Milliseconds since 1970-01-01 UTC. */
  readonly nowMs: () => number
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs: () => number
}

/** What the routes share. */
export interface AppParts extends AppOptions {
  readonly limits: Limits | undefined
  readonly tokens: TokenCache
  readonly lists: ListCache
}

/** Makes the limits and the caches of a service. */
export const makeParts = (options: AppOptions): AppParts => ({
  ...options,
  limits: createLimits(options),
  tokens: createTokenCache(options),
  lists: createListCache(options),
})

/** The service: answers any request, and never rejects. */
export function createApp(options: AppOptions): Handle {
  const parts = makeParts(options)
  const app = routes(parts)
  options.statistics?.setOperations(operationNames(app.routes))
  const answer = observe(app.fetch, operationsOf(app.routes), parts)
  return options.corsOrigins.length === 0 ? answer : shareWith(options.corsOrigins, answer)
}

/** The routes for the types of a client, as `@elysiajs/eden` reads them. */
export type App = ReturnType<typeof routes>

/** The Elysia app: all routes, and the hooks before them in their order. */
export function routes(parts: AppParts) {
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
      return answerError(cause, contextOf(request), parts.log)
    })
    .onRequest(requireOneHost)
    .onRequest(answerCachedList(parts))
    .use(parts.servesDocs ? docs(api, parts.publicUrl) : new Elysia())
    .use(probes(parts))
    .use(api)
  return app.use(otherMethods(app.routes))
}

/** The runtime joins several Host lines with a comma and a space, which no host name has. */
function requireOneHost({ request }: { readonly request: Request }): void {
  if (request.headers.get('host')?.includes(', ')) throw new AppError('several_hosts')
}
