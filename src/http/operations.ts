import type { Route } from './allow.ts'

/** The operation of requests that no route takes, and of OPTIONS. */
export const OTHER = 'other'

/** Names the operation that a request asks for, by its method and URL. No path that a client wrote is ever a name. */
export type OperationOf = (method: string, url: string) => string

/** The names of the operations of these routes: their `operationId`s, and `OTHER`. */
export const operationNames = (routes: readonly Route[]): readonly string[] => [
  ...new Set([...routes.flatMap(({ hooks }) => hooks.detail?.operationId ?? []), OTHER]),
]

/** Finds the operations of requests to these routes. A HEAD belongs to the operation of the GET. */
export function operationsOf(routes: readonly Route[]): OperationOf {
  const byPath = new Map<string, Map<string, string>>()
  const patterns: (readonly [RegExp, path: string])[] = []
  for (const { method, path, hooks } of routes) {
    const operations = byPath.get(path) ?? new Map<string, string>()
    if (hooks.detail?.operationId !== undefined) operations.set(method, hooks.detail.operationId)
    byPath.set(path, operations)
    if (path.includes(':')) patterns.push([new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`), path])
  }
  const dynamicPath = (path: string) => patterns.find(([pattern]) => pattern.test(path))?.[1] ?? ''
  return (method, url) => {
    const path = pathOf(url)
    const operations = byPath.get(path) ?? byPath.get(dynamicPath(path))
    return operations?.get(method === 'HEAD' ? 'GET' : method) ?? OTHER
  }
}

/** The path of a URL, as it was sent, without the query. */
export function pathOf(url: string): string {
  // It follows the scheme and the host, unless the URL is a path itself.
  const start = url.startsWith('/') ? 0 : url.indexOf('/', 'https://'.length)
  const end = url.indexOf('?', start)
  return url.slice(start, end === -1 ? undefined : end)
}
