import { sizedResponse } from '../answers.ts'
import { type Asset, makeAsset } from './asset.ts'

/** A page for people, with its assets. */
export type Page = Awaited<ReturnType<typeof makePage>>

interface PageParts {
  /** The styles and scripts, in the order in which they run. */
  readonly assets: readonly Asset[]
  /** Whether the page leads to the documentation. */
  readonly hasHelp?: boolean
  /** What the page may do beyond running its scripts (Content Security Policy Level 3). */
  readonly policy: readonly string[]
}

/** Makes a page. It runs its own scripts alone, no text becomes code, and no other page may show this one in a frame. */
export async function makePage({ assets, hasHelp = false, policy }: PageParts) {
  const icon = await makeAsset('icon', 'svg', new Blob([ICON]))
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Plant Store</title>
${[icon, ...assets].map(({ path }) => linkTo(path)).join('\n')}
${hasHelp ? '<link rel="help" href="docs">' : ''}
</head>
<body>
<noscript>This page needs JavaScript. Without it, use the API with a program like curl.</noscript>
</body>
</html>
`
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': [...BASE_POLICY, ...policy].join('; '),
    'referrer-policy': 'no-referrer',
  }
  return {
    assets: [icon, ...assets],
    answer: (others: Readonly<Record<string, string>> = {}) =>
      sizedResponse(html, { headers: { ...headers, ...others } }),
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
  if (path.endsWith('.js')) return `<script src="${path}" defer></script>`
  return `<link rel="${path.endsWith('.css') ? 'stylesheet' : 'icon'}" href="${path}">`
}
