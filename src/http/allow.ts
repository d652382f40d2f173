import { Elysia } from 'elysia'
import { contextOf } from './context.ts'
import { errorResponse } from './errors.ts'

/** A route as Elysia lists it in `app.routes`. */
export interface Route {
  readonly method: string
  readonly path: string
  readonly hooks: { readonly detail?: { readonly operationId?: string } }
}

/** Answers OPTIONS, and every method that a path of these routes does not take, with `Allow` (RFC 9110 §10.2.1). */
export function otherMethods(routes: readonly Route[]) {
  const app = new Elysia({ name: 'otherMethods' })
  for (const [path, taken] of Map.groupBy(routes, (route) => route.path)) {
    const headers = { allow: allowOf(taken.map(({ method }) => method)) }
    app
      .options(path, () => new Response(null, { status: 204, headers }), { parse: 'none' })
      .all(
        path,
        ({ request }) => {
          contextOf(request).error = 'method_not_allowed'
          return errorResponse('method_not_allowed', { headers })
        },
        { parse: 'none' },
      )
  }
  return app
}

/** Elysia answers HEAD wherever there is a GET. */
const allowOf = (methods: readonly string[]): string =>
  [...new Set([...methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])), 'OPTIONS'])].join(', ')
