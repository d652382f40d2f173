import { describe, expect, test } from 'bun:test'
import type { OpenAPIV3 } from 'openapi-types'
import { openApiDocument } from '../../src/http/docs/document.ts'
import { AUDIENCE, startIssuer } from '../support/issuer.ts'
import { until } from '../support/until.ts'
import { addressesIn, assetsIn, BASE_POLICY, policyOf, signInOf } from './support/pages.ts'
import { type Service, startService } from './support/service.ts'
import { tooNewIn } from './support/too-new.ts'
import { SOCKET_TRANSPORTS, SQLITE_TRANSPORTS } from './support/transports.ts'

/** What Chromium, Firefox and Safari send, and other values that prefer HTML to JSON. */
const FOR_PAGE = [
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8',
  'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  ...['text/html', 'TEXT/HTML', 'text/*', 'text/html;level=1', 'application/json;q=0.5, text/html;q=0.6'],
  ...['text/html, application/json;q=0.9', 'text/html , */*;q=0', '*/*, application/json;q=0.1'],
]
const FOR_JSON = [
  ...['*/*', 'application/json', 'application/*', '', 'text/html;q=0', 'text/html;q=0.5, application/json'],
  ...['text/html, application/json', 'text/html, */*', 'text/plain', 'image/*', 'text/html;q=x'],
  '*/*, text/html;q=0.1',
]
/** How much the page may load, compressed. */
const PAGE_MAX_BYTES = 45_000
/** How much more it loads for a sign-in with an identity provider. */
const PROTOCOL_MAX_BYTES = 7000
const UNKNOWN = { error: 40401, message: 'There is nothing at this path: check how it is written.' }

const DOCUMENT: OpenAPIV3.Document = await openApiDocument(undefined)

const get = (service: Service, path: string, headers: Record<string, string> = { accept: 'text/html' }) =>
  service.request('GET', path, { token: null, headers })

/** The paths of the assets of a page. */
const assetsOf = async (service: Service, page: string): Promise<readonly string[]> =>
  addressesIn((await get(service, page)).text)
    .filter((address) => address.startsWith('assets/'))
    .map((address) => `/${address}`)

describe.each(SQLITE_TRANSPORTS)('the pages, $name', (transport) => {
  test('answer a request without a token for / that prefers HTML to JSON, and no other', async () => {
    await using service = await startService(transport)

    for (const accept of [...FOR_PAGE, ...FOR_JSON]) {
      const isPage = FOR_PAGE.includes(accept)
      const page = await get(service, '/', { accept })
      const head = await service.request('HEAD', '/', { token: null, headers: { accept } })
      const seen = [page, head].map(({ status, headers }) => [status, headers.get('content-type'), headers.get('vary')])
      const expected = isPage ? [200, 'text/html; charset=utf-8', 'Accept'] : [404, 'application/json', 'Accept']
      const error = { error: 40401, message: expect.stringContaining('/docs ') }

      expect([accept, ...seen]).toEqual([accept, expected, expected])
      expect([head.text, page.body]).toEqual(['', isPage ? undefined : error])
    }
  })

  const publicUrl = 'https://plants.example.org:8443/prefix'
  const ofDocs = { path: '/docs', assets: ['icon.svg', 'docs.css', 'scalar.js', 'docs.js', 'openapi.json'] }
  const docsPolicy = { 'style-src': ["'self'", "'unsafe-inline'"], 'font-src': ['data:'] }
  test.each([
    {
      path: '/',
      assets: ['icon.svg', 'page.css', 'page.js', 'files.mjs', 'docs', 'docs'],
      options: {},
      policy: { 'style-src': ["'self'"] },
      servers: [],
    },
    { ...ofDocs, options: {}, policy: docsPolicy, servers: [] },
    { ...ofDocs, options: { publicUrl }, policy: docsPolicy, servers: ['https://plants.example.org:8443'] },
  ])('have a policy that allows their own assets and API alone: $path, $options', async ({ path, assets, ...page }) => {
    await using service = await startService(transport, page.options)

    const { status, headers, text } = await get(service, path)

    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(text).toContain(`<title>Plant Store${path === '/' ? '' : ' API'}</title>`)
    expect(policyOf(headers)).toEqual({
      ...BASE_POLICY,
      ...page.policy,
      'img-src': ["'self'", 'data:'],
      'connect-src': ["'self'", ...page.servers],
    })
    expect(assetsIn(text)).toEqual(assets)
    expect(text).toContain('<noscript>')
    if (path !== '/') return
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(text).not.toMatch(/:?\/\/[\w.-]|<style|<script>|\son\w+\s*=|javascript:/i)
  })

  test('name the identity provider with which people sign in, and may ask its token endpoint alone', async () => {
    await using issuer = await startIssuer()
    const usable = {
      issuer: issuer.issuer,
      authorization_endpoint: 'https://login.example.org/"><script>?x=1&y=2',
      token_endpoint: 'https://tokens.example.org:8443/token',
    }
    const others = {
      end_session_endpoint: 'http://login.example.org/logout',
      userinfo_endpoint: 'https://a.example.org',
    }
    issuer.state.answers.set('/.well-known/openid-configuration', () =>
      Response.json({ ...issuer.metadata, ...usable, ...others, response_modes_supported: ['query', 'fragment'] }),
    )
    const client = { clientId: 'a "page" <b>', parameters: [['resource', AUDIENCE] as const] }
    const jwt = { issuer: issuer.issuer, audience: AUDIENCE }
    await using service = await startService(transport, { jwt: { ...jwt, client } })
    await using without = await startService(transport, { jwt })

    const page = await until('the metadata were read', async (see) => {
      const page = await get(service, '/')
      return see(page.text).includes('token_endpoint') && page
    })
    const begun = await get(service, '/?code=secret-code&state=secret-state')
    const other = await get(without, '/')
    await until('both are in the log', (see) => see(service.logs()).split('"path":"/"').length > 2)

    const [policy, otherPolicy] = [policyOf(page.headers), policyOf(other.headers)]
    expect(otherPolicy['connect-src']).toEqual(["'self'"])
    expect(policy).toEqual({ ...otherPolicy, 'connect-src': ["'self'", 'https://tokens.example.org:8443'] })
    const defaults = [
      ['scope', 'openid profile plants:write'],
      ['response_mode', 'fragment'],
    ]
    expect(signInOf(page.text)).toEqual({ ...client, parameters: [...defaults, ...client.parameters], server: usable })
    expect([begun.status, begun.text, service.logs().includes('secret-')]).toEqual([200, page.text, false])
    const [protocol = '', path = ''] = /<link rel="module" href="(assets\/oauth-\w+.mjs)">\n/.exec(page.text) ?? []
    expect(page.text.replace(/<meta name="provider"[^>]*>/, '').replace(protocol, '')).toBe(other.text)
    const { headers } = await get(service, `/${path}`, { 'accept-encoding': 'gzip' })
    expect(Number(headers.get('content-length'))).toBeLessThanOrEqual(PROTOCOL_MAX_BYTES)
  })

  test.each([
    { options: { page: false }, unknown: ['/'], known: ['/docs', '/openapi.json'] },
    { options: { docs: false }, unknown: ['/docs', '/openapi.json'], known: ['/'] },
    { options: { page: false, docs: false }, unknown: ['/', '/docs', '/assets/nothing.js'], known: [] },
  ])('are unknown paths with their assets if they are turned off: $options', async ({ options, unknown, known }) => {
    await using on = await startService(transport)
    await using off = await startService(transport, options)
    const assets = (
      await Promise.all(unknown.filter((path) => !path.includes('.')).map((path) => assetsOf(on, path)))
    ).flat()
    // Both pages have the icon.
    const gone = assets.filter((asset) => known.length === 0 || !asset.includes('icon'))

    for (const path of [...unknown, ...gone]) {
      const { status, body } = await get(off, path)
      expect([path, status, body.error]).toEqual([path, 404, 40401])
    }
    for (const path of unknown) {
      for (const method of ['POST', 'OPTIONS']) {
        const { status, body, headers } = await off.request(method, path, { token: null })
        expect([path, method, status, body.error, headers.get('allow')]).toEqual([path, method, 404, 40401, null])
      }
    }
    expect(gone.length).toBeGreaterThan(1)
    expect(await Promise.all(known.map((path) => get(off, path)))).toMatchObject(known.map(() => ({ status: 200 })))
    expect(await off.list()).toMatchObject({ status: 200 })
  })

  test('name no documentation if there is none', async () => {
    await using service = await startService(transport, { docs: false })

    expect(assetsIn((await get(service, '/')).text)).toEqual(['icon.svg', 'page.css', 'page.js', 'files.mjs'])
    expect((await service.request('GET', '/')).body).toEqual(UNKNOWN)
  })

  test('have the document of the routes, which names the public URL and moves no route for it', async () => {
    await using service = await startService(transport)
    await using named = await startService(transport, { publicUrl })
    const { status, body, headers } = await get(service, '/openapi.json')

    expect([status, headers.get('content-type'), body]).toEqual([200, 'application/json', DOCUMENT])
    expect(body.servers).toEqual([{ url: '/' }])
    const info = { ...DOCUMENT.info, description: DOCUMENT.info.description?.replace('(./)', `(${publicUrl}/)`) }
    expect((await get(named, '/openapi.json')).body).toEqual({ ...DOCUMENT, info, servers: [{ url: publicUrl }] })
    expect([await named.list(), await get(named, '/prefix/plants')]).toMatchObject([{ status: 200 }, { status: 404 }])
  })

  test('lead from the document to the page at /, also behind a prefix, unless there is none', async () => {
    await using service = await startService(transport, { page: false })

    const { body } = await get(service, '/openapi.json')

    // A browser follows the link from /docs.
    expect(DOCUMENT.info.description).toEndWith(' on [the page at `/`](./).')
    expect(body.info.description).not.toContain('](')
  })

  test('have a script for /docs that reads the document beside it, and sends nothing to other hosts', async () => {
    await using service = await startService(transport)
    const path = (await assetsOf(service, '/docs')).find((asset) => /docs-.*\.js$/.test(asset)) ?? ''

    const { text } = await get(service, path, { 'accept-encoding': 'identity' })

    expect(JSON.parse(/\.\.\.(\{.*\}),/.exec(text)?.[1] ?? '')).toEqual({
      url: 'openapi.json',
      proxyUrl: '',
      withDefaultFonts: false,
      telemetry: false,
      agent: { disabled: true },
      mcp: { disabled: true },
      hideClientButton: true,
      showDeveloperTools: 'never',
    })
    expect(text).not.toMatch(/:?\/\/[\w.-]/)
  })
})

describe.each(SOCKET_TRANSPORTS)('the assets of the page, $name', (transport) => {
  test('are gzipped for a client that takes gzip, and for no other', async () => {
    await using service = await startService(transport)
    const TAKEN = ['gzip', 'GZIP', 'br, gzip;q=0.1', '*', 'deflate, *;q=0.5', 'identity;q=0.5, gzip']
    const REFUSED = ['identity', 'br', 'gzip;q=0', '*, gzip;q=0', '*;q=0', 'xgzip']

    for (const path of await assetsOf(service, '/')) {
      const answer = async (encoding: string) => {
        const { headers, text } = await get(service, path, { 'accept-encoding': encoding })
        return { encoding: headers.get('content-encoding'), vary: headers.get('vary'), text }
      }
      const { text } = await answer('identity')
      expect(await Promise.all([...TAKEN, ...REFUSED].map(answer))).toEqual([
        ...TAKEN.map(() => ({ encoding: 'gzip', vary: 'Accept-Encoding', text })),
        ...REFUSED.map(() => ({ encoding: null, vary: 'Accept-Encoding', text })),
      ])
    }
  })

  test('have styles that the oldest browsers know, but for two of Pico that change nothing there', async () => {
    await using service = await startService(transport)
    const [path = ''] = /assets\/page-\w+\.css/.exec((await get(service, '/')).text) ?? []

    const sample = '@media (scripting:none){p:open{content:"a" / "b";color:light-dark(red,blue)}}'
    expect(tooNewIn(sample)).toEqual(['(scripting)', ':open', 'content: with words', 'light-dark()'])
    expect(tooNewIn((await get(service, `/${path}`)).text)).toEqual(['accent-color', 'text-size-adjust'])
  })

  test('are cacheable for good, and have at most 45 kB with the page, compressed, but for the reader of CSV', async () => {
    await using service = await startService(transport)
    const { text } = await get(service, '/')
    const gzipped = { 'accept-encoding': 'gzip' }
    const paths = await assetsOf(service, '/')
    const assets = await Promise.all(paths.map((path) => get(service, path, gzipped)))

    expect(assets.map(({ headers }) => headers.get('cache-control'))).toEqual(
      Array.from({ length: 4 }, () => 'public, max-age=31536000, immutable'),
    )
    const sizes = assets.flatMap(({ headers }, at) =>
      paths[at]?.endsWith('.mjs') ? [] : [Number(headers.get('content-length'))],
    )
    expect(Math.min(...sizes)).toBeGreaterThan(100)
    expect(sizes.reduce((sum, size) => sum + size, Bun.gzipSync(text).length)).toBeLessThanOrEqual(PAGE_MAX_BYTES)
  })

  test('hold the whole library of the documentation, a third as long with gzip', async () => {
    await using service = await startService(transport)
    const library = new URL('../../node_modules/@scalar/api-reference/dist/browser/standalone.js', import.meta.url)
    const path = (await assetsOf(service, '/docs')).find((asset) => asset.includes('scalar-')) ?? ''
    const load = (encoding: string) => get(service, path, { 'accept-encoding': encoding })

    const [plain, compressed] = await Promise.all([load('identity'), load('gzip')])

    // `expect` would print megabytes.
    expect([plain, compressed].map(({ text }) => text === plain.text && text.length > 1_000_000)).toEqual([true, true])
    expect(plain.text === (await Bun.file(library).text())).toBe(true)
    expect(Number(compressed.headers.get('content-length'))).toBeLessThan(plain.text.length / 3)
  })
})
