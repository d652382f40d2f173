import { Elysia, NotFoundError } from 'elysia'
import type { Store } from '../domain/store.ts'
import type { Logger } from '../log.ts'
import type { Access } from './auth.ts'
import { contextOf } from './context.ts'
import { DOCS_PATHS, docs } from './docs.ts'
import { errorResponse, isServerFault, toErrorResponse } from './errors.ts'
import { otherMethods, READ_ONLY } from './methods.ts'
import { logFault, observe } from './observe.ts'
import { type PlantLimits, plants } from './plants.ts'
import { type Lifecycle, probes } from './probes.ts'

/** What the service is made of. */
export interface AppOptions extends PlantLimits {
  readonly store: Pick<Store, 'createPlant' | 'listPlants' | 'deletePlant' | 'findToken' | 'checkReady'>
  readonly noteUse: Access['noteUse']
  readonly log: Logger
  readonly logsRequests: boolean
  readonly lifecycle: Lifecycle
  /** Whether the API's documentation is served. */
  readonly servesDocs: boolean
  /** Where clients reach this service, for the documentation. */
  readonly publicUrl: string | undefined
  /** Milliseconds since 1970-01-01 UTC, and milliseconds of a clock that never jumps. */
  readonly nowMs: () => number
  readonly monotonicMs: () => number
}

/** What each path takes. */
const ALLOW = { '/plants': 'GET, HEAD, POST, OPTIONS', '/plants/:id': 'DELETE, OPTIONS' }
const ALLOW_PROBES = { '/healthz': READ_ONLY, '/readyz': READ_ONLY }
const ALLOW_DOCS = Object.fromEntries(Object.values(DOCS_PATHS).map((path) => [path, READ_ONLY]))

/** The service: answers any request, and never rejects. */
export function createApp(options: AppOptions): (request: Request) => Promise<Response> {
  const app = routes(options)
  return observe((request) => app.fetch(request), options)
}

/** The table of routes. What is registered before `plants` needs no token. */
export function routes(options: AppOptions) {
  const { store, noteUse, lifecycle, log, nowMs, monotonicMs } = options
  const onCut = (request: Request, error: unknown) => logFault(log, contextOf(request), error)
  const app = new Elysia({
    // A short Host would otherwise shift the path: one route would be taken for another.
    handler: { standardHostname: false },
    strictPath: true,
    normalize: false,
    precompile: true,
  }).onError(({ error, request }) => {
    // First by class: an error's own `code` would pass for Elysia's.
    if (error instanceof NotFoundError) return errorResponse('path_unknown')
    const context = contextOf(request)
    if (isServerFault(error)) logFault(log, context, error)
    return toErrorResponse(error, context.requestId)
  })
  if (options.servesDocs) app.use(docs(options.publicUrl)).use(otherMethods(ALLOW_DOCS))
  return app
    .use(probes(store, lifecycle, monotonicMs))
    .use(otherMethods({ ...ALLOW, ...ALLOW_PROBES }))
    .use(plants(store, { findToken: store.findToken, noteUse, nowMs }, options, onCut))
}
