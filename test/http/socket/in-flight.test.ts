import { describe, expect, test } from 'bun:test'
import { createApp } from '../../../src/http/app.ts'
import { appOptions } from '../../support/app.ts'
import { EXECUTABLE } from '../../support/executable.ts'
import { addLongPlants, requestAndWait, sendHalf } from '../../support/slow.ts'
import { STORES } from '../../support/stores.ts'
import { createMany, createUser, failingOn, listRequest } from '../support/long-lists.ts'
import { type Answer, type RequestOptions, type Service, SOCKET_TRANSPORTS, startService } from '../support/service.ts'

const JSON_BODY = { 'content-type': 'application/json' }
const REFUSED = {
  status: 503,
  retryAfter: '1',
  body: {
    error: 50303,
    message: 'The server is too busy or shutting down, nothing was and nothing will be stored: try again.',
  },
}

const seen = ({ status, headers, body }: Answer) => ({ status, retryAfter: headers.get('retry-after'), body })
const head = ({ token }: Service) => `Host: a\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n`

/** Holds a create under way: a part of its body is missing. */
function holdCreate(service: Service, id: number) {
  const body = JSON.stringify({ id, name: String(id) })
  const length = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  const held = sendHalf(service.port, `POST /plants HTTP/1.1\r\n${head(service)}${length}\r\n${body.slice(0, 5)}`)
  return { ...held, finish: () => held.sendRest(body.slice(5)) }
}

/** Waits until a list is answered with a status. */
async function untilListed(service: Service, status: 200 | 503): Promise<void> {
  while ((await service.list('?limit=1')).status !== status) await Bun.sleep(5)
}

describe.each(SOCKET_TRANSPORTS)('the limit of requests under way, $name', (transport) => {
  test('takes as many as it says, refuses one more, and takes one again when one has ended', async () => {
    await using service = await startService(transport, { maxInFlight: 2 })
    using first = holdCreate(service, 1)
    using second = holdCreate(service, 2)
    await untilListed(service, 503)

    for (const refused of [
      await service.create({ id: 3, name: 'Fern' }),
      await service.delete(3),
      await service.list(),
      await service.list('?limit=1'),
    ]) {
      expect(seen(refused)).toEqual(REFUSED)
    }
    expect((await service.request('HEAD', '/plants')).status).toBe(503)
    expect(await first.finish()).toStartWith('HTTP/1.1 200 ')
    // One is under way still, and this is the second.
    expect((await service.create({ id: 3, name: 'Fern' })).status).toBe(200)
    using third = holdCreate(service, 4)
    await untilListed(service, 503)
    expect(await second.finish()).toStartWith('HTTP/1.1 200 ')
    expect(await third.finish()).toStartWith('HTTP/1.1 200 ')

    expect(await service.names()).toEqual(['1', '2', 'Fern', '4'])
  })

  test('is none where none is set', async () => {
    await using service = await startService(transport)
    const held = Array.from({ length: 50 }, (_, id) => holdCreate(service, id))

    expect((await service.list('?limit=1')).status).toBe(200)
    for (const { finish } of held) expect(await finish()).toStartWith('HTTP/1.1 200 ')
    expect(await service.names()).toHaveLength(50)
  })

  test('counts a streamed list until its end, or until its client has gone', async () => {
    await using service = await startService(transport, { maxInFlight: 1 })
    addLongPlants(service.database)
    const get = `GET /plants HTTP/1.1\r\n${head(service)}\r\n`

    using reading = await requestAndWait(service.port, get)
    expect(seen(await service.list('?limit=1'))).toEqual(REFUSED)
    expect(await reading.readOn()).toEndWith('0\r\n\r\n')
    await untilListed(service, 200)
    using leaving = await requestAndWait(service.port, get)
    expect(seen(await service.list('?limit=1'))).toEqual(REFUSED)
    leaving.abort()
    await untilListed(service, 200)
  })

  test('counts the head of a list without a limit no longer than its answer takes', async () => {
    await using service = await startService(transport, { maxInFlight: 1 })

    for (let count = 0; count < 5; count++) expect((await service.request('HEAD', '/plants')).status).toBe(200)
    expect((await service.list()).status).toBe(200)
  })

  test('takes one again when a client has gone before its body was whole', async () => {
    await using service = await startService(transport, { maxInFlight: 1 })
    const chunked = `POST /plants HTTP/1.1\r\n${head(service)}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"id"\r\n`

    for (const hold of [() => holdCreate(service, 1), () => sendHalf(service.port, chunked)]) {
      using held = hold()
      await untilListed(service, 503)
      held.abort()
      await untilListed(service, 200)
    }
    expect(await service.names()).toEqual([])
  })

  test('holds for lists that are answered from memory, their heads and what is known of them', async () => {
    await using service = await startService(transport, { maxInFlight: 1 })
    const { headers } = await service.list('?limit=1')
    const known = { headers: { 'if-none-match': headers.get('etag') ?? '' } }
    const statuses = async () => [
      (await service.list('?limit=1')).status,
      (await service.list('?limit=1', known)).status,
      (await service.request('HEAD', '/plants?limit=1')).status,
    ]
    expect(await statuses()).toEqual([200, 304, 200])

    using held = holdCreate(service, 1)
    await untilListed(service, 503)

    expect(await statuses()).toEqual([503, 503, 503])
    expect(await held.finish()).toStartWith('HTTP/1.1 200 ')
  })

  test('is of clients with a token: what needs none is answered past it, and nobody without one fills it', async () => {
    await using service = await startService(transport, { maxInFlight: 1 })
    const stranger = sendHalf(service.port, 'POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{')
    expect((await service.list('?limit=1')).status).toBe(200)
    stranger.abort()
    using held = holdCreate(service, 1)
    await untilListed(service, 503)
    const open: [string, string, RequestOptions, number][] = [
      ['GET', '/healthz', { token: null }, 200],
      ['GET', '/readyz', { token: null }, 200],
      ['GET', '/openapi.json', { token: null }, 200],
      ['GET', '/docs', { token: null }, 200],
      ['OPTIONS', '/plants', {}, 204],
      ['GET', '/nothing', {}, 404],
      ['PUT', '/plants', {}, 405],
      ['GET', '/plants', { token: null }, 401],
      ['GET', '/plants', { token: 'nobody' }, 401],
    ]

    for (const [method, path, options, status] of open) {
      expect([method, path, (await service.request(method, path, options)).status]).toEqual([method, path, status])
    }
    expect(await held.finish()).toStartWith('HTTP/1.1 200 ')
  })

  test('is looked at where the store would be asked: after all else, and before the plants', async () => {
    await using service = await startService(transport, { maxInFlight: 1, maxBodyBytes: 100 })
    const { text: reader } = await service.createToken({ scope: 'read' })
    await service.create({ id: 9, name: 'Fern' })
    using held = holdCreate(service, 1)
    await untilListed(service, 503)
    const post = (body: string): RequestOptions => ({ headers: JSON_BODY, body })
    const codes: [string, string, RequestOptions, number][] = [
      ['DELETE', '/plants/1', { token: reader }, 40301],
      ['GET', '/plants?limit=x', {}, 40003],
      ['DELETE', '/plants/x', {}, 40004],
      ['POST', '/plants', { body: '{}' }, 41501],
      ['POST', '/plants', post(' '.repeat(101)), 41301],
      ['POST', '/plants', post('{'), 40001],
      ['POST', '/plants', post('[]'), 40002],
      ['POST', '/plants', post('{"id":9,"name":"Ivy"}'), 50303],
      ['DELETE', '/plants/7', {}, 50303],
    ]

    for (const [method, path, options, code] of codes) {
      expect([path, (await service.request(method, path, options)).body.error]).toEqual([path, code])
    }
    expect(await held.finish()).toStartWith('HTTP/1.1 200 ')
    expect(await service.names()).toEqual(['1', 'Fern'])
  })
})

/** Stores that fail are made from the source alone. */
const FAILING = EXECUTABLE === undefined ? STORES : []

describe.each(FAILING)('the limit of requests under way, on $name', ({ open }) => {
  test.each([1, 3])('takes one again when a list has failed at page %d', async (page) => {
    await using opened = await open()
    const { user, token } = await createUser(opened.store)
    await createMany(opened.store, user)
    const failing = failingOn(page, opened.store)
    const app = createApp(appOptions({ store: failing.store, maxInFlight: 1 }))
    const outcome = async (query: string) => {
      const response = await app(listRequest(token, { query }))
      return response.text().then(
        () => response.status,
        () => 'cut',
      )
    }

    expect(await outcome('')).toBe(page === 1 ? 500 : 'cut')
    expect(failing.calls()).toBe(page)
    expect([await outcome('?limit=1'), await outcome('')]).toEqual([200, 200])
  })

  test('takes one again, and no more, when a list fails whose client has gone', async () => {
    await using opened = await open()
    const { user, token } = await createUser(opened.store)
    await createMany(opened.store, user)
    const gone = Promise.withResolvers<void>()
    const failing = failingOn(2, opened.store, () => gone.promise)
    const app = createApp(appOptions({ store: failing.store, maxInFlight: 1 }))
    const list = async () => (await app(listRequest(token))).body?.getReader()

    const left = await list()
    await left?.read()
    const leaving = left?.cancel()
    gone.resolve()
    await leaving
    const held = await list()
    const { status } = await app(listRequest(token))
    await held?.cancel()

    expect([status, failing.calls()]).toEqual([503, 3])
    expect((await app(listRequest(token))).status).toBe(200)
  })
})
