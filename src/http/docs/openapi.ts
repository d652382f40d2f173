import type { OpenAPIV3 } from 'openapi-types'
import { type PlantOptions, plants } from '../plants.ts'
import { DOCS_PATHS } from './docs.ts'
import { pages } from './pages.ts'

/** No request comes to the routes that only describe themselves. */
const NO_SERVICE = {} as PlantOptions

/** The OpenAPI document that a server with this public URL serves, made without a server. */
export async function openApiDocument(publicUrl: string | undefined): Promise<OpenAPIV3.Document> {
  const { fetch } = pages(plants(NO_SERVICE), publicUrl)
  const response = await fetch(new Request(`http://localhost${DOCS_PATHS.document}`))
  return response.json() as Promise<OpenAPIV3.Document>
}
