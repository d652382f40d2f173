import { Elysia, NotFoundError } from 'elysia'
import type { Store } from '../domain/store.ts'
import type { Logger } from '../log.ts'
import { type AccessOptions, createAccess } from './auth.ts'
import { contextOf, setContext } from './context.ts'
import { DOCS_PATHS, docs } from './docs.ts'
import { errorResponse, isServerFault, toErrorResponse } from './errors.ts'
import { otherMethods, READ_ONLY } from './methods.ts'
import { logFault, observe } from './observe.ts'
import { type PlantLimits, plants } from './plants.ts'
import { type Lifecycle, probes } from './probes.ts'
import { rememberLists } from './remembered.ts'

/** What the service is made of. */
export interface AppOptions extends PlantLimits, AccessOptions {
  readonly store: Pick<
    Store,
    'createPlant' | 'listPlants' | 'deletePlant' | 'plantsRevision' | 'findToken' | 'tokensRevision' | 'checkReady'
  >
  readonly log: Logger
  readonly logsRequests: boolean
  readonly lifecycle: Lifecycle
  /** Whether the API's documentation is served. */
  readonly servesDocs: boolean
  /** Where clients reach this service, for the documentation. */
  readonly publicUrl: string | undefined
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs: () => number
}

/** What each path takes. */
const ALLOW = { '/plants': 'GET, HEAD, POST, OPTIONS', '/plants/:id': 'DELETE, OPTIONS' }
const ALLOW_PROBES = { '/healthz': READ_ONLY, '/readyz': READ_ONLY }
const ALLOW_DOCS = Object.fromEntries(Object.values(DOCS_PATHS).map((path) => [path, READ_ONLY]))

/** The service: answers any request, and never rejects. */
export function createApp(options: AppOptions): (request: Request) => Response | Promise<Response> {
  const { app, remembered } = assemble(options)
  return observe((request, context) => {
    const again = remembered.answer(request, context)
    if (again !== undefined) return again
    setContext(request, context)
    return app.fetch(request)
  }, options)
}

/** The table of routes, and the lists that are answered without it. What is registered before `plants` needs no token. */
export function assemble(options: AppOptions) {
  const { store, lifecycle, log, monotonicMs } = options
  const access = createAccess(options)
  const remembered = rememberLists(store, access)
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
  app
    .use(probes(store, lifecycle, monotonicMs))
    .use(otherMethods({ ...ALLOW, ...ALLOW_PROBES }))
    .use(plants(store, access, remembered, options, onCut))
  return { app, remembered }
}
