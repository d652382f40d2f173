import { describe, expect, test } from 'bun:test'
import { addressesIn } from './support/pages.ts'
import { startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

const PATH_UNKNOWN = {
  status: 404,
  body: { error: 40401, message: 'There is nothing at this path: check how it is written.' },
}
const METHOD_NOT_ALLOWED = { error: 40501, message: 'This path does not take this method: see the header Allow.' }

/** Every path, and the methods that it takes. */
const ALLOW: Readonly<Record<string, string>> = {
  '/plants': 'GET, HEAD, POST, OPTIONS',
  '/plants/1': 'GET, HEAD, DELETE, OPTIONS',
  '/plants/not-an-id': 'GET, HEAD, DELETE, OPTIONS',
  '/plants/%': 'GET, HEAD, DELETE, OPTIONS',
  '/healthz': 'GET, HEAD, OPTIONS',
  '/readyz': 'GET, HEAD, OPTIONS',
  '/openapi.json': 'GET, HEAD, OPTIONS',
  '/docs': 'GET, HEAD, OPTIONS',
  '/': 'GET, HEAD, OPTIONS',
}
/** Methods that `fetch` can send; others are in socket/http11.test.ts. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY']

/** Paths with two slashes at their beginning are in socket/http11.test.ts: `fetch` sends them with one. */
const UNKNOWN_PATHS = [
  ...['/nothing', '/plants/', '/plants//', '/plants//1', '/plants/1/', '/plants/1/2', '/Plants', '/PLANTS'],
  ...['/Plants/1', '/%70lants', '/plant%73', '/%2Fplants', '/plants%2F1', '/plants%3Flimit=0', '/plants;limit=0'],
  ...['/plants.json', '/plants%00', '/plants%20', '/v1/plants', '/api/plants', '/healthz/', '/Healthz', '/readyz/1'],
  ...['/docs/', '/docs/json', '/assets', '/assets/', '/assets/a/b', '/assets/nothing.js', '/swagger', '/openapi'],
  ...['/openapi.yaml', '/metrics', '/.env', '/plantstore.db', '/index.html'],
]

describe.each(TRANSPORTS)('paths, $name', (transport) => {
  test('that are not exactly those of the service are answered with 404, with and without a token', async () => {
    await using service = await startService(transport)
    const plant = { headers: { 'content-type': 'application/json' }, body: '{"id":1,"name":"Fern"}' }

    for (const path of UNKNOWN_PATHS) {
      for (const token of [service.token, null, 'nobody']) {
        for (const answer of [
          await service.request('GET', path, { token }),
          await service.request('POST', path, { token, ...plant }),
          await service.request('DELETE', path, { token }),
          await service.request('OPTIONS', path, { token }),
        ]) {
          expect({ path, status: answer.status, body: answer.body }).toEqual({ path, ...PATH_UNKNOWN })
          expect(answer.headers.has('allow')).toBe(false)
        }
      }
    }
    expect(await service.names()).toEqual([])
  })

  test('answer other methods with 405 and OPTIONS with 204, and Allow has exactly the methods that they take', async () => {
    await using service = await startService(transport)
    const docs = await service.request('GET', '/docs', { token: null })
    const assets = addressesIn(docs.text).map((address) => [`/${address}`, 'GET, HEAD, OPTIONS'] as const)

    expect(assets.length).toBeGreaterThan(0)
    for (const [path, allow] of [...Object.entries(ALLOW), ...assets]) {
      for (const method of METHODS.filter((method) => !allow.split(', ').includes(method))) {
        const { status, body, headers } = await service.request(method, path, { token: null })
        // The runtime leaves the body of an answer to HEAD away.
        const refusal = method === 'HEAD' && body === undefined ? undefined : METHOD_NOT_ALLOWED
        expect([method, path, status, body, headers.get('allow')]).toEqual([method, path, 405, refusal, allow])
      }
      const { status, headers, text } = await service.request('OPTIONS', path, { token: null })
      expect([path, status, text, headers.get('allow')]).toEqual([path, 204, '', allow])
    }
  })

  test('take the method from nowhere but the request line', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const headers = { 'x-http-method-override': 'DELETE', 'x-method-override': 'DELETE', 'x-http-method': 'DELETE' }

    expect((await service.request('POST', '/plants/1?_method=DELETE', { headers })).status).toBe(405)
    expect((await service.request('GET', '/plants/1?_method=DELETE', { headers })).status).toBe(200)
    expect(await service.names()).toEqual(['Fern'])
  })
})
