import type { OpenAPIV3 } from 'openapi-types'
import { authentication } from '../access/authentication.ts'
import { createLimits } from '../access/limits.ts'
import { createListCache } from '../access/list-cache.ts'
import { createTokenCache } from '../access/token-cache.ts'
import { plants } from '../plants.ts'
import { DOCS_PATHS } from './docs.ts'
import { pages } from './pages.ts'

/** The OpenAPI document that a server with this public URL serves, made without a server. */
export async function openApiDocument(publicUrl: string | undefined): Promise<OpenAPIV3.Document> {
  const response = await pages(describedPlants(), publicUrl).fetch(
    new Request(`http://localhost${DOCS_PATHS.document}`),
  )
  return response.json() as Promise<OpenAPIV3.Document>
}

/** The routes as they describe themselves, with nothing behind them. */
function describedPlants() {
  const unserved = (): never => {
    throw new TypeError('these routes serve no requests')
  }
  const store = {
    createPlant: unserved,
    listPlants: unserved,
    deletePlant: unserved,
    plantsVersion: unserved,
    hasOnlyGrown: unserved,
    findToken: unserved,
    tokensVersion: unserved,
  }
  const options = { store, recordUse: unserved, statistics: undefined, nowMs: unserved }
  const limits = createLimits({ rateLimit: undefined, maxInFlight: undefined })
  return plants({
    store,
    authentication: authentication({ tokens: createTokenCache(options), limits, statistics: undefined }),
    lists: createListCache(options),
    semaphore: undefined,
    maxBodyBytes: 0,
    listMax: undefined,
    allowSlowReader: unserved,
    onCut: unserved,
  })
}
