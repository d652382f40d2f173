// Tested in test/http/pages.test.ts.
import { isOptional, NEW_PLANT_FIELDS } from '../../domain/plant.ts'
import type { SignIn } from '../options.ts'
import { bundle } from './bundle.ts' with { type: 'macro' }
import { makePage } from './html.ts'

const STYLE = bundle('page.css')
const SCRIPT = bundle('main.tsx')
const OAUTH = bundle('oauth.ts', 'esm')
const FILES = bundle('../formats/web-file.ts', 'esm')

/** Makes the page on which users see and tend their plants. It uses only the public API, and the provider of `signIn`. */
export function makePlantsPage(hasDocs: boolean, takesJwts: boolean, signIn?: SignIn) {
  const fields = NEW_PLANT_FIELDS.map((field) => (isOptional(field) ? `${field}?` : field)).join(' ')
  const help = hasDocs ? '<link rel="help" href="docs">' : ''
  const jwt = takesJwts ? '<meta name="jwt" content="yes">' : ''
  const provider = signIn ? `<meta name="provider" content="${Bun.escapeHTML(JSON.stringify(signIn))}">` : ''
  const tokenOrigin = URL.parse(String(signIn?.server.token_endpoint))?.origin
  const withoutScripts = hasDocs ? '<noscript><a href="docs">How to use the API</a></noscript>' : ''
  return makePage({
    title: 'Plant Store',
    files: { 'page.css': STYLE, 'page.js': SCRIPT, 'files.mjs': FILES, ...(signIn && { 'oauth.mjs': OAUTH }) },
    head: `<meta name="fields" content="${fields}">${help}${jwt}${provider}`,
    body: `<p class="state">The page is on its way. If it does not come, load it again.</p>${withoutScripts}`,
    // The style has small images in it.
    policy: ["style-src 'self'", "img-src 'self' data:", `connect-src 'self'${tokenOrigin ? ` ${tokenOrigin}` : ''}`],
  })
}
