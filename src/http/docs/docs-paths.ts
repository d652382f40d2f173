import { Elysia } from 'elysia'

/** Where the documentation is. The page names the other two relative to itself, so that it works behind any prefix. */
export const DOCS_PATHS = { page: '/docs', script: '/docs/scalar.js', document: '/openapi.json' } as const

/** The paths of the documentation. What is at them is made when somebody asks for it: a start does not wait for it. */
export function docsPaths(publicUrl: string | undefined) {
  const app = new Elysia({ name: 'docsPaths' })
  let made: Promise<{ fetch(request: Request): Promise<Response> }> | undefined
  const make = async () => (await import('./docs.ts')).docs(publicUrl)
  const answer = async ({ request }: { readonly request: Request }) => {
    made ??= make()
    return (await made).fetch(new Request(request.url))
  }
  const answerHead = async (context: { readonly request: Request }) => {
    const response = await answer(context)
    const { headers } = response
    headers.set('content-length', String((await response.blob()).size))
    return new Response(null, { headers })
  }
  for (const path of Object.values(DOCS_PATHS)) {
    app.get(path, answer, { parse: 'none' }).head(path, answerHead, { parse: 'none' })
  }
  return app
}
