import { swagger } from '@elysiajs/swagger'
import { type AnyElysia, Elysia } from 'elysia'
// The executable embeds the script of the page: the page loads nothing from other hosts.
import scalarScript from '../../../node_modules/@scalar/api-reference/dist/browser/standalone.js' with { type: 'file' }
import { JSON_TYPE, json } from '../answers.ts'
import { documentation } from './components.ts'
import { DOCS_PATHS } from './docs.ts'
import { REQUEST_BODY } from './operation.ts'

/** On a phone these two elements would cover other text. The page says the same beside them. */
const PHONE_STYLE =
  "@media (max-width: 767px) { .scalar-sidebar-toggle, [data-testid='auth-indicator'] { display: none } }"

/** The page sends nothing to other hosts: no token through a proxy, and no requests for fonts, telemetry or an assistant. */
const SCALAR_CONFIG = {
  url: DOCS_PATHS.document.slice(1),
  proxyUrl: '',
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
}

/** The pages of the documentation: the document for programs, and a page for people that works without a network. */
export function pages(api: AnyElysia, publicUrl: string | undefined): { fetch(request: Request): Promise<Response> } {
  // A short Host would otherwise shift the path.
  const app = new Elysia({ name: 'pages', handler: { standardHostname: false } })
    // The document arrives as an object, for which Elysia would send a charset that JSON does not have.
    .mapResponse(({ response }) => (isDocument(response) ? json(documentText(response)) : undefined))
    .use(
      swagger({
        path: DOCS_PATHS.page,
        specPath: DOCS_PATHS.document,
        scalarCDN: DOCS_PATHS.script.slice(1),
        scalarConfig: SCALAR_CONFIG,
        documentation: documentation(publicUrl),
      }),
    )
    .get(
      DOCS_PATHS.script,
      () => new Response(Bun.file(scalarScript), { headers: { 'content-type': 'text/javascript' } }),
      { parse: 'none', detail: { hide: true } },
    )
    .use(api)
  return {
    async fetch(request) {
      const response = await app.fetch(request)
      // Only requests for these paths come here.
      if (!response.ok) throw new Error(`the documentation was not found where it is: ${response.status}`)
      return new URL(request.url).pathname === DOCS_PATHS.page ? withPolicy(response, publicUrl) : response
    },
  }
}

const isDocument = (response: unknown): response is object =>
  typeof response === 'object' && response !== null && !(response instanceof Response)

/**
 * Corrects what the plugin writes: three media types for each body, and no description of the body of a request. Elysia writes
 * its own names into schemas.
 */
const documentText = (document: object): string =>
  JSON.stringify(document, (key, value) => {
    if (key === '$id') return undefined
    if (hasRequestBody(value)) {
      const { [REQUEST_BODY]: requestBody, ...operation } = value
      return { ...operation, requestBody }
    }
    return isMediaTypes(value) ? { [JSON_TYPE]: value[JSON_TYPE] } : value
  })

const hasRequestBody = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && REQUEST_BODY in value

const isMediaTypes = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && JSON_TYPE in value && 'multipart/form-data' in value

/** Adds the policy of the page (Content Security Policy Level 3). */
async function withPolicy(page: Response, publicUrl: string | undefined): Promise<Response> {
  // A style in the library's configuration would replace the style of the plugin.
  const html = (await page.text()).replace('</head>', `<style>${PHONE_STYLE}</style></head>`)
  const { headers } = page
  // The plugin sends `utf8`, which is not the name of a charset.
  headers.set('content-type', 'text/html; charset=utf-8')
  headers.set('content-security-policy', pagePolicy(html, publicUrl))
  return new Response(html, { headers })
}

/**
 * Lets the page run its script, set styles, read the document and call the API, and nothing else. The page loads nothing from
 * other hosts and sends them nothing, no text becomes code, and no other page may show this one in a frame.
 */
function pagePolicy(html: string, publicUrl: string | undefined): string {
  const inline = [...html.matchAll(/<script\b[^>]*>([^<]+)<\/script>/g)].map(
    ([, script = '']) => `'sha256-${Bun.SHA256.hash(script, 'base64')}'`,
  )
  return [
    "default-src 'none'",
    `script-src ${["'self'", ...inline].join(' ')}`,
    // The page writes many styles while it runs. A style cannot bring code in.
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
    `connect-src ${["'self'", ...(publicUrl === undefined ? [] : [new URL(publicUrl).origin])].join(' ')}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}
