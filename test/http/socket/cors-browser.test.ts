import { describe, expect, test } from 'bun:test'
import { lacks } from '../../support/requirement.ts'
import { BROWSER_TIMEOUT_MS, CHROMIUM, startBrowser, startPage } from '../support/browser.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

/** A script of a page. Returns what the page can read of each answer, or the name of the error. */
const visit = (url: string, token: string) => `(async () => {
  const authorization = 'Bearer ${token}'
  const ask = async (path, init) => {
    try {
      const response = await fetch('${url}' + path, init)
      const text = await response.text()
      const names = ['link', 'etag', 'retry-after', 'x-request-id']
      const headers = names.filter((name) => response.headers.get(name) !== null)
      return [response.status, JSON.parse(text || 'null')?.error ?? null, ...headers]
    } catch (error) {
      return error.name
    }
  }
  const create = (id) => ({
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json', 'x-request-id': 'of-the-page' },
    body: JSON.stringify({ id, name: 'Fern' }),
  })
  return [
    await ask('/plants', create(1)),
    await ask('/plants', create(2)),
    await ask('/plants', create(1)),
    await ask('/plants?limit=1', { headers: { authorization, 'if-none-match': '"none"' } }),
    await ask('/plants/1', { method: 'DELETE', headers: { authorization } }),
    await ask('/plants'),
    await ask('/healthz'),
    await ask('/plants', { headers: { authorization } }),
  ]
})()`

describe.skipIf(lacks(CHROMIUM)).each(SOCKET_TRANSPORTS)('pages of other origins in a browser, $name', (transport) => {
  test(
    'use the whole service if their origin is listed, and nothing of it if not',
    async () => {
      using listed = startPage()
      using stranger = startPage()
      const rateLimit = { requests: 5, periodMs: 3_600_000, burst: 0 }
      await using service = await startService(transport, { corsOrigins: [listed.origin], rateLimit })
      const { text: other } = await service.createToken({ user: 'you' })
      await using browser = await startBrowser()
      const answersTo = async (origin: string, token: string) => {
        const { page } = await browser.open()
        await page.goto(origin)
        return page.evaluate<unknown[]>(visit(`http://127.0.0.1:${service.port}`, token))
      }

      expect(await answersTo(listed.origin, service.token)).toEqual([
        [200, null, 'x-request-id'],
        [200, null, 'x-request-id'],
        [409, 40901, 'x-request-id'],
        [200, null, 'link', 'etag', 'x-request-id'],
        [204, null, 'x-request-id'],
        [401, 40101, 'x-request-id'],
        [200, null, 'x-request-id'],
        [429, 42901, 'retry-after', 'x-request-id'],
      ])
      expect(await answersTo(stranger.origin, other)).toEqual(Array.from({ length: 8 }, () => 'TypeError'))
      // The browser asked first whether it may send what would have changed something.
      expect(await service.names(other)).toEqual([])
    },
    BROWSER_TIMEOUT_MS,
  )
})
