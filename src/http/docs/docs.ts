import { type AnyElysia, Elysia } from 'elysia'

/** Where the documentation is. The page names the other two relative to itself, so that it works behind any prefix. */
export const DOCS_PATHS = { page: '/docs', script: '/docs/scalar.js', document: '/openapi.json' } as const

/** The API's documentation. It is made at the first request for it: a start does not wait for its libraries to load. */
export function docs(api: AnyElysia, publicUrl: string | undefined) {
  let made: Promise<{ fetch(request: Request): Promise<Response> }> | undefined
  const make = async () => (await import('./pages.ts')).pages(api, publicUrl)
  const answer = async ({ request }: { readonly request: Request }) => {
    made ??= make()
    return (await made).fetch(new Request(request.url))
  }
  const route = { parse: 'none', detail: { operationId: 'docs', hide: true } } as const
  return new Elysia({ name: 'docs' })
    .get(DOCS_PATHS.page, answer, route)
    .get(DOCS_PATHS.script, answer, route)
    .get(DOCS_PATHS.document, answer, route)
}
