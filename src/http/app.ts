import { Elysia, NotFoundError } from 'elysia'
import type { Store } from '../domain/store.ts'
import type { Logger } from '../log.ts'
import { type AdmissionLimits, type Admit, admission } from './access/admission.ts'
import { type Authentication, authenticated, recalled } from './access/auth.ts'
import { type Caller, type Callers, type CallersOptions, rememberCallers } from './access/callers.ts'
import { leaving, requireRoom } from './access/in-flight.ts'
import { type Connection, contextOf, type RequestContext, setContext } from './context.ts'
import { shareWith } from './cors.ts'
import { DOCS_PATHS, docsPaths } from './docs/docs-paths.ts'
import { errorResponse, httpErrorKindOf, isServerFault, toErrorResponse } from './errors.ts'
import { answerList, type CappedList } from './list.ts'
import { otherMethods, READ_ONLY } from './methods.ts'
import { type Handle, logFault, observe } from './observe.ts'
import { type PlantLimits, plants } from './plants.ts'
import { type Lifecycle, probes } from './probes.ts'
import type { RequestStatistics } from './statistics.ts'

/** What the service is made of. */
export interface AppOptions extends PlantLimits, AdmissionLimits, CallersOptions {
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
  /** Where requests are counted; `undefined` where they are not. */
  readonly statistics: RequestStatistics | undefined
  readonly lifecycle: Lifecycle
  readonly usesTls: boolean
  /** Whether the API's documentation is served. */
  readonly servesDocs: boolean
  /** Of which origins pages may read answers. */
  readonly corsOrigins: readonly string[]
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
export function createApp(
  options: AppOptions,
): (request: Request, connection?: Connection) => Response | Promise<Response> {
  const callers = rememberCallers(options)
  const admit = admission(options)
  const appOfStrangers = routes(options, callers, authenticated(callers, admit))
  // For who is known: what is behind the token, without the way to it, which takes a third of the time.
  let appOfKnown: typeof appOfStrangers | undefined
  const handle: Handle = (request, context) => {
    const caller = callers.recall(request.headers.get('authorization'))
    context.caller = caller
    if (caller !== undefined) {
      options.statistics?.hit('callers')
      const list = recallList(callers, caller, request)
      if (list !== undefined) {
        options.statistics?.hit('lists')
        return admit === undefined ? answerList(list, request) : answerAdmitted(admit, caller, context, list, request)
      }
    }
    setContext(request, context)
    if (caller === undefined) return appOfStrangers.fetch(request)
    appOfKnown ??= routes(options, callers, recalled(admit))
    return appOfKnown.fetch(request)
  }
  const app = observe(options.maxInFlight === undefined ? handle : leaving(handle), options)
  return options.corsOrigins.length === 0 ? app : shareWith(options.corsOrigins, app)
}

/** A list that was answered before and is still true: what the route would answer. */
function recallList(callers: Callers, caller: Caller, { method, url }: Request): CappedList | undefined {
  return method === 'GET' || method === 'HEAD' ? callers.recallList(caller, url) : undefined
}

async function answerAdmitted(
  admit: Admit,
  caller: Caller,
  context: RequestContext,
  list: CappedList,
  request: Request,
): Promise<Response> {
  await admit(caller, context)
  requireRoom(context)
  return answerList(list, request)
}

/** The table of routes. What is registered before `plants` needs no token. */
export function routes(options: AppOptions, callers: Callers, authentication: Authentication) {
  const { store, lifecycle, log, monotonicMs } = options
  const onCut = (request: Request, error: unknown) => logFault(log, contextOf(request), error)
  const app = new Elysia({
    // A short Host would otherwise shift the path: one route would be taken for another.
    handler: { standardHostname: false },
    strictPath: true,
    normalize: false,
    precompile: false,
  }).onError(({ error, request }) => {
    const context = contextOf(request)
    // First by class: an error's own `code` would pass for Elysia's.
    context.refusal = error instanceof NotFoundError ? 'path_unknown' : httpErrorKindOf(error)
    if (error instanceof NotFoundError) return errorResponse('path_unknown')
    if (isServerFault(error)) logFault(log, context, error)
    return toErrorResponse(error, context.requestId)
  })
  if (options.servesDocs) app.use(docsPaths(options.publicUrl)).use(otherMethods(ALLOW_DOCS))
  return app
    .use(probes(store, lifecycle, monotonicMs))
    .use(otherMethods({ ...ALLOW, ...ALLOW_PROBES }))
    .use(plants(store, callers, authentication, options, onCut))
}
