import { Elysia, NotFoundError } from 'elysia'
import { AppError } from '../domain/error.ts'
import { shareWith } from './cors.ts'
import { docs } from './docs/docs.ts'
import { answerCachedList } from './lists/list-plants.ts'
import { answerError, contextOf, observe } from './observe.ts'
import { operationNames, operationsOf, otherMethods } from './operations.ts'
import type { AppOptions } from './options.ts'
import { type AppParts, makeParts } from './parts.ts'
import { plants } from './plants.ts'
import { probes } from './probes.ts'
import type { Handle } from './server.ts'

/** The service: answers any request, and never rejects. */
export function createApp(options: AppOptions): Handle {
  const parts = makeParts(options)
  const app = routes(parts)
  options.statistics?.setOperations(operationNames(app.routes))
  const answer = observe(app.fetch, { ...parts, operationOf: operationsOf(app.routes) })
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
    .onRequest(answerCachedList(parts))
    .use(api)
    .use(parts.servesDocs ? docs(api, parts.publicUrl) : new Elysia())
    .use(probes(parts))
  return app.use(otherMethods(app.routes))
}
