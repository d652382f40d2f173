import { Elysia } from 'elysia'
import { AppError } from '../../domain/error.ts'
import { prefersHtml } from '../accept.ts'
import { errorResponse } from '../answers.ts'
import { contextOf, pathOf } from '../observe.ts'
import type { AppOptions } from '../options.ts'
import type { Page } from './html.ts'

type PageOptions = Pick<AppOptions, 'servesPage' | 'servesDocs' | 'publicUrl'>

/** The pages for people, and their assets. A page is made at the first request for it: a start does not wait for that. */
export function pages({ servesPage, servesDocs, publicUrl }: PageOptions) {
  const app = new Elysia({ name: 'pages' })
  const served: (() => Promise<Page>)[] = []
  if (servesPage) {
    const page = once(async () => (await import('./plants-page.ts')).makePlantsPage(servesDocs))
    served.push(page)
    app.get(
      '/',
      ({ request }) => {
        if (prefersHtml(request.headers.get('accept'))) return page().then(({ answer }) => answer(VARY))
        contextOf(request).error = 'path_unknown'
        return errorResponse('path_unknown', servesDocs ? FOR_PROGRAMS : '', VARY)
      },
      routeOf('page'),
    )
  }
  if (servesDocs) {
    const docs = once(async () => (await import('../docs/page.ts')).makeDocsPage(publicUrl))
    served.push(docs)
    app.get('/docs', () => docs().then(({ answer }) => answer()), routeOf('docs'))
  }
  if (served.length === 0) return app
  return app.get(
    '/assets/:name',
    async ({ request }) => {
      for (const page of served) {
        const asset = (await page()).assets.find(({ path }) => `/${path}` === pathOf(request.url))
        if (asset !== undefined) return asset.answer(request)
      }
      throw new AppError('path_unknown')
    },
    routeOf('asset'),
  )
}

const VARY = { vary: 'Accept' }

const FOR_PROGRAMS = 'This path has a page for browsers and nothing for programs: /docs describes the API.'

const routeOf = (operationId: string) => ({ parse: 'none', detail: { operationId, hide: true } }) as const

/** Calls a function once, and returns the same result to all callers. */
function once<T extends object>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}
