import { describe, expect, test } from 'bun:test'
import type { OpenAPIV3 } from 'openapi-types'
import { openApiDocument } from '../../src/http/docs/document.ts'
import { addressesIn, assetsIn, BASE_POLICY, policyOf } from './support/pages.ts'
import { startService } from './support/service.ts'
import { SOCKET_TRANSPORTS } from './support/transports.ts'

const PATHS = ['/openapi.json', '/docs']

const DOCUMENT: OpenAPIV3.Document = await openApiDocument(undefined)

describe.each(SOCKET_TRANSPORTS)('the documentation, $name', (transport) => {
  test('serves the document of the routes without a token', async () => {
    await using service = await startService(transport)

    const { status, body, headers } = await service.request('GET', '/openapi.json', { token: null })

    expect({ status, type: headers.get('content-type'), body }).toEqual({
      status: 200,
      type: 'application/json',
      body: DOCUMENT,
    })
    expect(body.servers).toEqual([{ url: '/' }])
  })

  test('names the public URL if it is set, and moves no route for it', async () => {
    const publicUrl = 'https://plants.example.org/prefix'
    await using service = await startService(transport, { publicUrl })
    await service.create({ id: 1, name: 'Fern' })

    const { body } = await service.request('GET', '/openapi.json', { token: null })

    const info = { ...DOCUMENT.info, description: DOCUMENT.info.description?.replace('(./)', `(${publicUrl}/)`) }
    expect(body).toEqual({ ...DOCUMENT, info, servers: [{ url: publicUrl }] })
    expect(await service.names()).toEqual(['Fern'])
    expect((await service.request('GET', '/prefix/plants')).status).toBe(404)
  })

  test('leads from the document to the page at /, also behind a prefix, unless there is none', async () => {
    await using service = await startService(transport, { servesPage: false })

    const { body } = await service.request('GET', '/openapi.json', { token: null })

    // A browser follows the link from /docs.
    expect(DOCUMENT.info.description).toEndWith(' on [the page at `/`](./).')
    expect(body.info.description).not.toContain('](')
  })

  test.each([
    [undefined, []],
    ['https://plants.example.org:8443/prefix', ['https://plants.example.org:8443']],
  ])(
    'has a page whose policy allows its own assets and API alone, with the public URL %p',
    async (publicUrl, servers) => {
      await using service = await startService(transport, publicUrl === undefined ? {} : { publicUrl })

      const { status, headers, text } = await service.request('GET', '/docs', { token: null })

      expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
      expect(policyOf(headers)).toEqual({
        ...BASE_POLICY,
        'style-src': ["'self'", "'unsafe-inline'"],
        'img-src': ["'self'", 'data:'],
        'font-src': ['data:'],
        'connect-src': ["'self'", ...servers],
      })
      expect(text).toContain('<noscript>')
      expect(assetsIn(text)).toEqual(['icon.svg', 'docs.css', 'scalar.js', 'docs.js'])
    },
  )

  test('has a script that reads the document beside it, and sends nothing to other hosts', async () => {
    await using service = await startService(transport)
    const page = await service.request('GET', '/docs', { token: null })
    const path = addressesIn(page.text).find((address) => address.startsWith('assets/docs-') && address.endsWith('.js'))

    const { text } = await service.request('GET', `/${path}`, {
      token: null,
      headers: { 'accept-encoding': 'identity' },
    })

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

  test('is an unknown path if it is turned off, and its assets are unknown', async () => {
    await using on = await startService(transport)
    await using service = await startService(transport, { servesDocs: false })
    const { text } = await on.request('GET', '/docs', { token: null })
    const assets = addressesIn(text).filter((address) => !address.includes('icon'))

    expect(assets).toHaveLength(3)
    for (const address of assets) {
      const { status, body } = await service.request('GET', `/${address}`, { token: null })
      expect([address, status, body?.error]).toEqual([address, 404, 40401])
    }
    for (const path of PATHS) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const { status, body, headers } = await service.request(method, path, { token: null })
        expect([path, method, status, body.error, headers.get('allow')]).toEqual([path, method, 404, 40401, null])
      }
    }
    expect((await service.list()).status).toBe(200)
  })
})
