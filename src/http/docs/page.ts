// Tested in test/http/socket/docs-browser.test.ts.
// The executable embeds the library: the page loads nothing from other hosts.
import scalar from '../../../node_modules/@scalar/api-reference/dist/browser/standalone.js' with { type: 'file' }
import { makePage } from '../page/html.ts'

/** On a phone these two elements would cover other text. The page says the same beside them. */
const STYLE = `body { margin: 0 }
@media (max-width: 767px) { .scalar-sidebar-toggle, [data-testid='auth-indicator'] { display: none } }
`

/** The page sends nothing to other hosts: no token through a proxy, and no requests for fonts, telemetry or an assistant. */
const CONFIG = {
  url: 'openapi.json',
  proxyUrl: '',
  withDefaultFonts: false,
  telemetry: false,
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  showDeveloperTools: 'never',
}

/** The base address makes the page work behind a prefix. A public URL in the document replaces it. */
const SCRIPT = `Scalar.createApiReference(document.body.appendChild(document.createElement('main')), {
  ...${JSON.stringify(CONFIG)},
  baseServerURL: new URL('.', location.href).href,
})
`

/** Makes the page that shows the OpenAPI document to people, and lets them try the API. It works without a network. */
export function makeDocsPage(publicUrl: string | undefined) {
  return makePage({
    title: 'Plant Store API',
    files: { 'docs.css': STYLE, 'scalar.js': Bun.file(scalar), 'docs.js': SCRIPT },
    body: '<noscript><a href="openapi.json">What the API is, for programs</a></noscript>',
    policy: [
      // The library writes many styles while it runs. A style cannot bring code in.
      "style-src 'self' 'unsafe-inline'",
      "img-src 'self' data:",
      'font-src data:',
      `connect-src ${["'self'", ...(publicUrl === undefined ? [] : [new URL(publicUrl).origin])].join(' ')}`,
    ],
  })
}
