import { describe, expect, test } from 'bun:test'
import type { OpenAPIV3 } from 'openapi-types'
import { openApiDocument } from '../../src/http/docs/docs.ts'
import { startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

const PATHS = ['/openapi.json', '/docs', '/docs/scalar.js']

const DOCUMENT: OpenAPIV3.Document = await openApiDocument(undefined)

describe.each(TRANSPORTS)('the documentation, $name', (transport) => {
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

    expect(body).toEqual({ ...DOCUMENT, servers: [{ url: publicUrl }] })
    expect(await service.names()).toEqual(['Fern'])
    expect((await service.request('GET', '/prefix/plants')).status).toBe(404)
  })

  test('has a page with links to its document and script alone', async () => {
    await using service = await startService(transport)

    const { status, headers, text } = await service.request('GET', '/docs', { token: null })

    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const addresses = [...text.matchAll(/\b(?:src|href|action|data-url|data-proxy-url)\s*=\s*["']?([^"'\s>]*)/g)]
    expect(addresses.map(([, address]) => address)).toEqual(['openapi.json', 'docs/scalar.js'])
    expect(text).not.toMatch(/:?\/\/[\w.-]/)
    expect(text).not.toMatch(/@import|url\(|<link|<iframe|<base|<form|integrity=/i)
    const configuration = /data-configuration='([^']*)'/.exec(text)?.[1] ?? ''
    expect(JSON.parse(configuration)).toEqual({
      spec: { url: 'openapi.json' },
      url: 'openapi.json',
      proxyUrl: '',
      withDefaultFonts: false,
      telemetry: false,
      agent: { disabled: true },
      mcp: { disabled: true },
      hideClientButton: true,
      showDeveloperTools: 'never',
      _integration: 'elysiajs',
    })
  })

  test.each([
    [undefined, []],
    ['https://plants.example.org:8443/prefix', ['https://plants.example.org:8443']],
  ])(
    'has a policy for its page that allows what is on it and no more, with the public URL %p',
    async (publicUrl, servers) => {
      await using service = await startService(transport, publicUrl === undefined ? {} : { publicUrl })

      const { headers, text } = await service.request('GET', '/docs', { token: null })
      const head = await service.request('HEAD', '/docs', { token: null })

      const scripts = [...text.matchAll(/<script\b[^>]*>([\s\S]*?)<\/script>/g)].map(([, script = '']) => script)
      const hashes = scripts.filter(Boolean).map((script) => `'sha256-${Bun.SHA256.hash(script, 'base64')}'`)
      const policy = headers.get('content-security-policy')
      expect(hashes).toHaveLength(1)
      expect(policy?.split('; ').map((directive) => directive.split(' '))).toEqual([
        ['default-src', "'none'"],
        ['script-src', "'self'", ...hashes],
        ['style-src', "'unsafe-inline'"],
        ['img-src', 'data:'],
        ['font-src', 'data:'],
        ['connect-src', "'self'", ...servers],
        ['base-uri', "'none'"],
        ['form-action', "'none'"],
        ['frame-ancestors', "'none'"],
      ])
      // Event handlers and such URLs would run code without a script.
      expect(text).not.toMatch(/<[^>]*\son\w+\s*=|javascript:/i)
      expect(head.headers.get('content-security-policy')).toBe(policy)
    },
  )

  test('serves the whole script of the pinned package', async () => {
    await using service = await startService(transport)
    const script = Bun.file(
      new URL('../../node_modules/@scalar/api-reference/dist/browser/standalone.js', import.meta.url),
    )

    const { text } = await service.request('GET', '/docs/scalar.js', { token: null })

    // `expect` would print megabytes.
    expect(text === (await script.text())).toBe(true)
    expect(text.length).toBeGreaterThan(1_000_000)
  })

  test('is an unknown path if it is turned off', async () => {
    await using service = await startService(transport, { servesDocs: false })

    for (const path of PATHS) {
      for (const method of ['GET', 'POST', 'OPTIONS']) {
        const { status, body, headers } = await service.request(method, path, { token: null })
        expect([path, method, status, body.error, headers.get('allow')]).toEqual([path, method, 404, 40401, null])
      }
    }
    expect((await service.list()).status).toBe(200)
  })
})
