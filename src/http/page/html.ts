// Tested in test/http/pages.test.ts.
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { weightOf } from '../accept.ts'
import { respond } from '../answers.ts'

interface PageOptions {
  readonly title: string
  /** The styles and scripts by their names, in the order in which they run. */
  readonly files: Readonly<Record<string, string | Blob>>
  /** Further elements of its head, which scripts read. */
  readonly head?: string
  /** What shows until its scripts have come, or without JavaScript. */
  readonly body: string
  /** What the page may do beyond running its scripts (Content Security Policy Level 3). */
  readonly policy: readonly string[]
}

/** Makes a page. It runs only its own scripts, no text becomes code, and no other page may show this one in a frame. */
export async function makePage({ title, files, head = '', body, policy }: PageOptions) {
  const assets = await Promise.all(Object.entries({ 'icon.svg': ICON, ...files }).map(makeAsset))
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${assets.map(({ path }) => linkTo(path)).join('\n')}
${head}
</head>
<body>
<noscript><p>This page needs JavaScript. Without it, use the API with a program like curl.</p></noscript>
${body}
</body>
</html>
`
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': [...BASE_POLICY, ...policy].join('; '),
    'referrer-policy': 'no-referrer',
  }
  return {
    /** The styles, scripts and pictures that it loads. */
    assets,
    /** The answer with the page, to which `others` are added. */
    answer: (others: Readonly<Record<string, string>> = {}) => respond(html, { headers: { ...headers, ...others } }),
  }
}

const BASE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
]

/** A leaf. */
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<path d="M27 4C12 4 5 11 5 20q0 3 1 5 4-9 14-14Q10 17 8 29h3q0-2 1-3 15 0 15-22z" fill="#2e8b57"/>
</svg>
`

function linkTo(path: string): string {
  // Another script imports it when it needs it.
  if (path.endsWith('.mjs')) return `<link rel="module" href="${path}">`
  if (path.endsWith('.js')) return `<script src="${path}" defer></script>`
  return `<link rel="${path.endsWith('.css') ? 'stylesheet' : 'icon'}" href="${path}">`
}

/** Makes a file of a page. Its name has a hash, so browsers keep it for good. It is compressed at the first request for it. */
async function makeAsset([name, file]: readonly [string, string | Blob]) {
  const content = typeof file === 'string' ? new Blob([file]) : file
  const hash = Bun.hash(await content.arrayBuffer()).toString(36)
  const type = Bun.file(name).type
  const compress = async () => promisify(gzip)(await content.arrayBuffer(), { level: 9 })
  let compressed: ReturnType<typeof compress> | undefined
  return {
    /** Relative, so that it holds behind any prefix. */
    path: `assets/${name.replace('.', `-${hash}.`)}`,
    async answer({ headers }: Request): Promise<Response> {
      const answerHeaders = {
        'content-type': type,
        'cache-control': 'public, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
        vary: 'Accept-Encoding',
      }
      if (weightOf(headers.get('accept-encoding'), 'gzip', '*') === 0) {
        return respond(content, { headers: answerHeaders })
      }
      compressed ??= compress()
      return respond(await compressed, { headers: { ...answerHeaders, 'content-encoding': 'gzip' } })
    },
  }
}
