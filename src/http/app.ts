import { Elysia, NotFoundError } from 'elysia'
import { AppError } from '../domain/error.ts'
import { errorResponse } from './answers.ts'
import { shareWith } from './cors.ts'
import { answerCachedLists } from './lists/list-plants.ts'
import { answerError, contextOf, observe } from './observe.ts'
import type { AppOptions } from './options.ts'
import { pages } from './page/routes.ts'
import { type AppParts, makeParts } from './parts.ts'
import { plants } from './plants.ts'
import { probes } from './probes.ts'
import type { Handle } from './server.ts'

/** The service: answers any request, and never rejects. */
export function createApp(options: AppOptions): Handle {
  const parts = makeParts(options)
  const app = routes(parts)
  const { names, operationOf } = operationsOf(app.routes)
  options.statistics?.setOperations(names)
  const answer = observe(answerCachedLists(parts, app.fetch), { ...parts, operationOf })
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
    .onError(({ error, request, set }) => {
      // With any other status, Elysia would send a copy of the answer, whose size nobody knows.
      set.status = 200
      // By class, because an error's own `code` would pass for Elysia's.
      const cause = error instanceof NotFoundError ? new AppError('path_unknown') : error
      return answerError(cause, contextOf(request), parts.log)
    })
    .use(api)
    .use(pages(api, parts))
    .use(probes(parts))
  return app.use(otherMethods(app.routes))
}

/** A route as Elysia lists it in `app.routes`. */
interface Route {
  readonly method: string
  readonly path: string
  readonly hooks: { readonly detail?: { readonly operationId?: string } }
}

/** The operation of requests that no route takes, and of OPTIONS. */
const OTHER = 'other'

/** Names the operations of these routes, and finds the one that a request asks for. A HEAD belongs to the operation of the GET. */
function operationsOf(routes: readonly Route[]) {
  const named = routes.flatMap(({ method, path, hooks }) => {
    const name = hooks.detail?.operationId
    const source = path.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+')
    return name === undefined ? [] : [{ method, name, pattern: new RegExp(`^${source}$`) }]
  })
  const byMethod = Map.groupBy(named, ({ method }) => method)
  return {
    names: new Set([...named.map(({ name }) => name), OTHER]),
    operationOf(method: string, path: string): string {
      for (const { name, pattern } of byMethod.get(method === 'HEAD' ? 'GET' : method) ?? []) {
        if (pattern.test(path)) return name
      }
      return OTHER
    },
  }
}

/** Answers OPTIONS, and every method that a path of these routes does not take, with `Allow` (RFC 9110 §10.2.1). */
function otherMethods(routes: readonly Route[]) {
  const app = new Elysia({ name: 'otherMethods' })
  for (const [path, taken] of Map.groupBy(routes, (route) => route.path)) {
    const headers = { allow: allowOf(taken.map(({ method }) => method)) }
    const refuse = ({ request }: { readonly request: Request }) => {
      contextOf(request).error = 'method_not_allowed'
      return errorResponse('method_not_allowed', '', headers)
    }
    app
      .options(path, () => new Response(null, { status: 204, headers }), { parse: 'none' })
      .all(path, refuse, { parse: 'none' })
  }
  return app
}

/** Elysia answers HEAD wherever there is a GET. */
const allowOf = (methods: readonly string[]): string =>
  [...new Set([...methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])), 'OPTIONS'])].join(', ')
