import { Elysia } from 'elysia'
import { errorResponse } from './answers.ts'
import { contextOf } from './observe.ts'

/** A route as Elysia lists it in `app.routes`. */
interface Route {
  readonly method: string
  readonly path: string
  readonly hooks: { readonly detail?: { readonly operationId?: string } }
}

/** The operation of requests that no route takes, and of OPTIONS. */
const OTHER = 'other'

/** The names of the operations of these routes: their `operationId`s, and `other`. */
export const operationNames = (routes: readonly Route[]): readonly string[] => [
  ...new Set([...routes.flatMap(({ hooks }) => hooks.detail?.operationId ?? []), OTHER]),
]

/** Finds the operations of requests to these routes. A HEAD belongs to the operation of the GET. */
export function operationsOf(routes: readonly Route[]): (method: string, path: string) => string {
  const byMethod = Map.groupBy(
    routes.flatMap(({ method, path, hooks }) => {
      const name = hooks.detail?.operationId
      const source = path.replaceAll('.', '\\.').replace(/:\w+/g, '[^/]+')
      return name === undefined ? [] : [{ method, name, pattern: new RegExp(`^${source}$`) }]
    }),
    ({ method }) => method,
  )
  return (method, path) => {
    for (const { name, pattern } of byMethod.get(method === 'HEAD' ? 'GET' : method) ?? []) {
      if (pattern.test(path)) return name
    }
    return OTHER
  }
}

/** Answers OPTIONS, and every method that a path of these routes does not take, with `Allow` (RFC 9110 §10.2.1). */
export function otherMethods(routes: readonly Route[]) {
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
