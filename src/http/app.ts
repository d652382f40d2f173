// Tested in test/http/transcripts/paths.txt.
import { Elysia, type InternalRoute, NotFoundError } from 'elysia'
import { AppError } from '../error.ts'
import { errorResponse } from './answers.ts'
import { api } from './api.ts'
import { createTokenCache } from './authentication.ts'
import type { Handle } from './connection.ts'
import { allowOrigins } from './cors.ts'
import { challengeJwts, resourceMetadata } from './jwt/resource.ts'
import { answerCachedLists, createListCache } from './lists/list-cache.ts'
import { answerError, withLogAndMetrics } from './log-and-metrics.ts'
import type { AppOptions, Services } from './options.ts'
import { pages } from './page/routes.ts'
import { probes } from './probes.ts'
import { limitRate } from './rate-limit.ts'
import { contextOf, OTHER_OPERATION } from './request-context.ts'

/**
 * The service: answers any request, and never rejects. README.md draws a request's way. What stands around the router is no hook
 * of Elysia: hooks would see neither a cached list nor what the runtime makes of HEAD and errors, and `onAfterResponse` sees
 * wrong statuses. Only servers with JWTs pay for `challengeJwts`. Pages and the rate limit are ours: a plugin for files reads a
 * folder, and the hook of a plugin for rates sees no cached list.
 */
export function createApp(options: AppOptions): Handle {
  const services = createServices(options)
  const { fetch } = routes(services)
  const answerOthers = options.provider === undefined ? fetch : challengeJwts(fetch, options.publicUrl)
  const answer = withLogAndMetrics(answerCachedLists(services, answerOthers), services)
  return options.corsOrigin === undefined ? answer : allowOrigins(options.corsOrigin, answer)
}

export const createServices = (options: AppOptions): Services => ({
  ...options,
  countRequest: options.rateLimit && limitRate(options.rateLimit),
  tokens: createTokenCache(options),
  lists: createListCache(options),
})

/** The routes for the types of a client, as `@elysiajs/eden` reads them. */
export type App = ReturnType<typeof routes>

/** The Elysia app: all routes, and the hooks before them in their order. */
export function routes(services: Services) {
  const described = api(services)
  const app = new Elysia({
    // A short Host would otherwise shift the path: one route would be taken for another.
    handler: { standardHostname: false },
    strictPath: true,
    normalize: false,
    // Each route is compiled at its first request: a start does not wait for that.
    precompile: false,
  })
    .onError(({ error, request, set }) => {
      // With any other status, Elysia would send a copy of the answer, whose size nobody knows.
      set.status = 200
      // By class, because an error's own `code` would pass for Elysia's.
      const cause = error instanceof NotFoundError ? new AppError('path_unknown') : error
      return answerError(cause, contextOf(request), services.log)
    })
    // The first hook that knows the route. A later one would not name a request that is refused before it.
    .onTransform(({ request, route }) => {
      const method = request.method === 'HEAD' ? 'GET' : request.method
      contextOf(request).operation = operations.get(`${method} ${route}`) ?? OTHER_OPERATION
    })
    .use(described)
    .use(pages(described, services))
    .use(probes(services))
    .use(resourceMetadata(services))
  const declared: readonly InternalRoute[] = app.routes
  const operations = new Map(
    declared.map(({ method, path, hooks }) => [`${method} ${path}`, hooks.detail?.operationId]),
  )
  return app.use(otherMethods(declared))
}

/**
 * Answers OPTIONS, and every method that a path of these routes does not take, with `Allow` (RFC 9110 §10.2.1). Elysia would
 * answer 404 instead. A `beforeHandle` of a route throws `path_unknown` for all methods.
 */
function otherMethods(routes: readonly InternalRoute[]) {
  const app = new Elysia({ name: 'otherMethods' })
  for (const [path, taken] of Map.groupBy(routes, (route) => route.path)) {
    const hook = { parse: 'none', beforeHandle: taken.flatMap(({ hooks }) => hooks.beforeHandle ?? []) } as const
    // Elysia answers HEAD wherever there is a GET.
    const methods = taken.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
    const headers = { allow: [...new Set([...methods, 'OPTIONS'])].join(', ') }
    const refuse = ({ request }: { readonly request: Request }) => {
      contextOf(request).error = 'method_not_allowed'
      return errorResponse('method_not_allowed', '', headers)
    }
    app.options(path, () => new Response(null, { status: 204, headers }), hook).all(path, refuse, hook)
  }
  return app
}
