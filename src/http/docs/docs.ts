import { type AnyElysia, Elysia } from 'elysia'
import type { OpenAPIV3 } from 'openapi-types'
import { json } from '../answers.ts'
import type { AppParts } from '../parts.ts'
import { plants } from '../plants.ts'

/** Serves the OpenAPI document. It is made at the first request for it: a start does not wait for its libraries to load. */
export function docs(api: AnyElysia, publicUrl: string | undefined) {
  let document: Promise<string> | undefined
  const answer = async () => {
    document ??= writeDocument(api, publicUrl)
    return json(await document)
  }
  return new Elysia({ name: 'docs' }).get('/openapi.json', answer, {
    parse: 'none',
    detail: { operationId: 'docs', hide: true },
  })
}

/** The OpenAPI document that a server with this public URL serves, made without a server. */
export const openApiDocument = async (publicUrl: string | undefined): Promise<OpenAPIV3.Document> =>
  // No request comes to these routes: they only describe themselves.
  JSON.parse(await writeDocument(plants({} as AppParts), publicUrl))

const writeDocument = async (api: AnyElysia, publicUrl: string | undefined): Promise<string> =>
  (await import('./document.ts')).documentText(api, publicUrl)
