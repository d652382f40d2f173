import { describe, expect, test } from 'bun:test'
import { weightOf } from '../../src/http/accept.ts'
import { addressesIn, assetsIn, BASE_POLICY, policyOf } from './support/pages.ts'
import { type Service, startService } from './support/service.ts'
import { SOCKET_TRANSPORTS, TRANSPORTS } from './support/transports.ts'

/** What Chromium, Firefox and Safari send, and other values that prefer HTML to JSON. */
const FOR_PAGE = [
  'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8',
  'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  ...['text/html', 'TEXT/HTML', 'text/*', 'text/html;level=1', 'application/json;q=0.5, text/html;q=0.6'],
  ...['text/html, application/json;q=0.9', 'text/html , */*;q=0', '*/*, application/json;q=0.1'],
]
const FOR_JSON = [
  ...['*/*', 'application/json', 'application/*', '', 'text/html;q=0', 'text/html;q=0.5, application/json'],
  ...[
    'text/html, application/json',
    'text/html, */*',
    'text/plain',
    'image/*',
    'text/html;q=x',
    '*/*, text/html;q=0.1',
  ],
]

const asPage = { token: null, headers: { accept: 'text/html' } }

/** The paths of the page's assets. */
const assetsOf = async (service: Service): Promise<readonly string[]> =>
  addressesIn((await service.request('GET', '/', asPage)).text)
    .filter((address) => address !== 'docs')
    .map((address) => `/${address}`)

describe.each(TRANSPORTS)('the page, $name', (transport) => {
  test('answers a request without a token that prefers HTML to JSON', async () => {
    await using service = await startService(transport)

    for (const accept of FOR_PAGE) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await service.request(method, '/', { token: null, headers: { accept } })
        expect([accept, status, headers.get('content-type'), headers.get('vary')]).toEqual([
          accept,
          200,
          'text/html; charset=utf-8',
          'Accept',
        ])
      }
    }
  })

  test('is 40401 for a program that takes anything or JSON, and the message names the documentation', async () => {
    await using service = await startService(transport)

    for (const accept of FOR_JSON) {
      const { status, body, headers } = await service.request('GET', '/', { headers: { accept } })
      expect([accept, status, body, headers.get('vary')]).toEqual([
        accept,
        404,
        { error: 40401, message: expect.stringContaining('/docs ') },
        'Accept',
      ])
      const head = await service.request('HEAD', '/', { headers: { accept } })
      expect([accept, head.status, head.text, head.headers.get('vary')]).toEqual([accept, 404, '', 'Accept'])
    }
  })

  test('names no documentation if there is none', async () => {
    await using service = await startService(transport, { servesDocs: false })

    const page = await service.request('GET', '/', asPage)
    const { body } = await service.request('GET', '/')

    expect([page.status, assetsIn(page.text)]).toEqual([200, ['icon.svg', 'page.css', 'page.js']])
    expect(body).toEqual({ error: 40401, message: 'There is nothing at this path: check how it is written.' })
  })

  test('is an unknown path if it is turned off, and its assets are unknown', async () => {
    await using on = await startService(transport)
    await using off = await startService(transport, { servesPage: false })

    for (const path of ['/', ...(await assetsOf(on)).filter((asset) => !asset.includes('icon'))]) {
      const { status, body } = await off.request('GET', path, asPage)
      expect([path, status, body.error]).toEqual([path, 404, 40401])
    }
    for (const method of ['POST', 'OPTIONS']) {
      const { status, body, headers } = await off.request(method, '/', asPage)
      expect([method, status, body.error, headers.get('allow')]).toEqual([method, 404, 40401, null])
    }
    expect((await off.request('GET', '/docs', asPage)).status).toBe(200)
  })

  test('has no assets at all if there is no page', async () => {
    await using service = await startService(transport, { servesPage: false, servesDocs: false })

    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const { status, body } = await service.request(method, '/assets/nothing.js', { token: null })
      expect([method, status, body.error]).toEqual([method, 404, 40401])
    }
  })

  test('has a policy that allows its own assets and API, and no style or script in a text', async () => {
    await using service = await startService(transport)

    const { headers, text } = await service.request('GET', '/', asPage)

    expect(policyOf(headers)).toEqual({
      ...BASE_POLICY,
      'style-src': ["'self'"],
      'img-src': ["'self'", 'data:'],
      'connect-src': ["'self'"],
    })
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(assetsIn(text)).toEqual(['icon.svg', 'page.css', 'page.js', 'docs'])
    expect(text).toContain('<noscript>')
    expect(text).not.toMatch(/:?\/\/[\w.-]|<style|<script>|\son\w+\s*=|javascript:/i)
  })
})

describe.each(SOCKET_TRANSPORTS)('the assets of the page, $name', (transport) => {
  test('are gzipped for a client that takes gzip, and for no other', async () => {
    await using service = await startService(transport)
    const TAKEN = ['gzip', 'GZIP', 'br, gzip;q=0.1', '*', 'deflate, *;q=0.5', 'identity;q=0.5, gzip']
    const REFUSED = ['identity', 'br', 'gzip;q=0', '*, gzip;q=0', '*;q=0', 'xgzip']

    for (const path of await assetsOf(service)) {
      const answer = async (encoding: string) => {
        const { headers, text } = await service.request('GET', path, {
          token: null,
          headers: { 'accept-encoding': encoding },
        })
        return { encoding: headers.get('content-encoding'), vary: headers.get('vary'), text }
      }
      const { text } = await answer('identity')
      expect(await Promise.all([...TAKEN, ...REFUSED].map(answer))).toEqual([
        ...TAKEN.map(() => ({ encoding: 'gzip', vary: 'Accept-Encoding', text })),
        ...REFUSED.map(() => ({ encoding: null, vary: 'Accept-Encoding', text })),
      ])
    }
  })

  test('are cacheable for good, and have less than 60 KB with the page', async () => {
    await using service = await startService(transport)

    const page = await service.request('GET', '/', asPage)
    const assets = await Promise.all(
      (await assetsOf(service)).map((path) =>
        service.request('GET', path, { token: null, headers: { 'accept-encoding': 'gzip' } }),
      ),
    )

    expect(assets.map(({ headers }) => headers.get('cache-control'))).toEqual(
      assets.map(() => 'public, max-age=31536000, immutable'),
    )
    const sizes = [page, ...assets].map(({ headers }) => Number(headers.get('content-length')))
    expect(Math.min(...sizes)).toBeGreaterThan(100)
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(60_000)
  })

  test('hold the whole library of the documentation, a third as long with gzip', async () => {
    await using service = await startService(transport)
    const library = new URL('../../node_modules/@scalar/api-reference/dist/browser/standalone.js', import.meta.url)
    const docs = await service.request('GET', '/docs', { token: null })
    const path = `/${addressesIn(docs.text).find((address) => address.startsWith('assets/scalar-'))}`
    const get = (encoding: string) =>
      service.request('GET', path, { token: null, headers: { 'accept-encoding': encoding } })

    const [plain, compressed] = await Promise.all([get('identity'), get('gzip')])

    // `expect` would print megabytes.
    expect([plain, compressed].map(({ text }) => text === plain.text && text.length > 1_000_000)).toEqual([true, true])
    expect(plain.text === (await Bun.file(library).text())).toBe(true)
    expect(Number(compressed.headers.get('content-length'))).toBeLessThan(plain.text.length / 3)
  })
})

test.each([
  [null, ['gzip'], 0],
  ['gzip;q=0.3', ['gzip', '*'], 0.3],
  ['*;q=0.2', ['gzip', '*'], 0.2],
  ['*, gzip;q=0', ['gzip', '*'], 0],
])('the weight that %p gives to the first of %p is %p', (header, ranges, weight) => {
  expect(weightOf(header, ...ranges)).toBe(weight)
})
