// Tested in test/http/pages.test.ts.
import { type AnyElysia, Elysia } from 'elysia'
import { AppError } from '../../error.ts'
import { prefersHtml } from '../accept.ts'
import { errorResponse, respond } from '../answers.ts'
import { pathOf } from '../log-and-metrics.ts'
import type { AppOptions } from '../options.ts'
import { contextOf } from '../request-context.ts'

type PageOptions = Pick<AppOptions, 'page' | 'docs' | 'publicUrl' | 'provider'>

/** The pages for people with their assets, and the OpenAPI document of `api`. Each is made at the first request for it. */
export function pages(api: AnyElysia, { docs: servesDocs, ...options }: PageOptions) {
  const { page: servesPage, publicUrl, provider } = options
  const page = once(
    async (signIn) => (await import('./plants-page.ts')).makePlantsPage(servesDocs, provider !== undefined, signIn),
    provider?.signIn,
  )
  const docs = once(async () => (await import('../docs/page.ts')).makeDocsPage(publicUrl))
  const document = once(async () => (await import('../docs/document.ts')).documentText(api, options))
  const served = [...(servesPage ? [page] : []), ...(servesDocs ? [docs] : [])]

  const answerRoot = async ({ request }: { readonly request: Request }): Promise<Response> => {
    if (prefersHtml(request.headers.get('accept'))) return (await page()).answer(VARY)
    contextOf(request).error = 'path_unknown'
    return errorResponse('path_unknown', servesDocs ? FOR_PROGRAMS : '', VARY)
  }
  const findAsset = async (request: Request) => {
    for (const make of served) {
      const asset = (await make()).assets.find(({ path }) => `/${path}` === pathOf(request.url))
      if (asset !== undefined) return asset
    }
    throw new AppError('path_unknown')
  }

  const app = new Elysia({ name: 'pages' })
  if (servesPage) app.get('/', answerRoot, routeOf('page'))
  if (servesDocs) {
    app.get('/docs', async () => (await docs()).answer(), routeOf('docs'))
    app.get('/openapi.json', async () => respond(await document()), routeOf('docs'))
  }
  if (served.length === 0) return app
  return app.get('/assets/:name', async ({ request }) => (await findAsset(request)).answer(request), {
    ...routeOf('asset'),
    beforeHandle: async ({ request }) => void (await findAsset(request)),
  })
}

const VARY = { vary: 'Accept' }

const FOR_PROGRAMS = 'This path has a page for browsers and nothing for programs: /docs describes the API.'

const routeOf = (operationId: string) => ({ parse: 'none', detail: { operationId, hide: true } }) as const

/** Calls a function once, and again if its input has changed. Returns the same result to all callers meanwhile. */
function once<T extends object, I>(make: (input: I | undefined) => T, inputNow: () => I | undefined = () => undefined) {
  let made: { readonly of: I | undefined; readonly result: T } | undefined
  return (): T => {
    const of = inputNow()
    if (made === undefined || !Bun.deepEquals(made.of, of)) made = { of, result: make(of) }
    return made.result
  }
}
