import { type AnyElysia, Elysia } from 'elysia'
import type { OpenAPIV3 } from 'openapi-types'
import type { AppParts } from '../parts.ts'
import { plants } from '../plants.ts'

/** Where the documentation is. The page names the other two relative to itself, so that it works behind any prefix. */
const DOCS_PATHS = { page: '/docs', script: '/docs/scalar.js', document: '/openapi.json' } as const

/** The API's documentation. It is made at the first request for it: a start does not wait for its libraries to load. */
export function docs(api: AnyElysia, publicUrl: string | undefined) {
  let pages: ReturnType<typeof makePages> | undefined
  const answer = async ({ request }: { readonly request: Request }) => {
    pages ??= makePages(api, publicUrl)
    return (await pages)(new Request(request.url))
  }
  const route = { parse: 'none', detail: { operationId: 'docs', hide: true } } as const
  return new Elysia({ name: 'docs' })
    .get(DOCS_PATHS.page, answer, route)
    .get(DOCS_PATHS.script, answer, route)
    .get(DOCS_PATHS.document, answer, route)
}

/** The OpenAPI document that a server with this public URL serves, made without a server. */
export async function openApiDocument(publicUrl: string | undefined): Promise<OpenAPIV3.Document> {
  // No request comes to these routes: they only describe themselves.
  const answer = await makePages(plants({} as AppParts), publicUrl)
  const response = await answer(new Request(`http://localhost${DOCS_PATHS.document}`))
  return response.json() as Promise<OpenAPIV3.Document>
}

const makePages = async (api: AnyElysia, publicUrl: string | undefined) =>
  (await import('./document.ts')).pages(api, DOCS_PATHS, publicUrl)
