import { describe, expect, test } from 'bun:test'
import { addLongPlants, requestAndWait, sendHalf } from '../../support/slow.ts'
import { until } from '../../support/until.ts'
import { ANSWERED_BEFORE_TOKENS, BUSY, expectCodes, post, REFUSED_BY_THEMSELVES, seen } from '../support/answers.ts'
import { expectDescribed } from '../support/described.ts'
import { rawRequest } from '../support/raw-request.ts'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

/** Sends the first part of a create, which is in flight until its rest is sent. */
function holdCreate({ port, token }: Service, id: number) {
  const body = JSON.stringify({ id, name: String(id) })
  const lines = ['Content-Type: application/json', `Content-Length: ${body.length}`]
  const held = sendHalf(port, rawRequest('POST', '/plants', { token, lines, body: body.slice(0, 5) }))
  return { ...held, finish: () => held.sendRest(body.slice(5)) }
}

/** Waits until a list is answered with a status. */
const untilListed = (service: Service, status: 200 | 503) =>
  until(`a list is answered with ${status}`, async () => (await service.list('?limit=1')).status === status)

describe.each(SOCKET_TRANSPORTS)('the limit of requests in flight, $name', (transport) => {
  test('takes as many requests as it allows, refuses one more, and takes one again when one has ended', async () => {
    await using service = await startService(transport, { maxInFlight: 2 })
    using first = holdCreate(service, 1)
    using second = holdCreate(service, 2)
    await untilListed(service, 503)

    for (const [method, path, refused] of [
      ['POST', '/plants', await service.create({ id: 3, name: 'Fern' })],
      ['DELETE', '/plants/3', await service.delete(3)],
      ['GET', '/plants', await service.list()],
      ['GET', '/plants?limit=1', await service.list('?limit=1')],
      ['GET', '/plants/3', await service.get(3)],
    ] as const) {
      expect(seen(refused)).toEqual(BUSY)
      expectDescribed(method, path, refused)
    }
    for (const path of ['/plants', '/plants/3']) expect((await service.request('HEAD', path)).status).toBe(503)
    expect(await first.finish()).toStartWith('HTTP/1.1 200 ')
    // One request is still in flight, and this is the second.
    expect((await service.create({ id: 3, name: 'Fern' })).status).toBe(200)
    using third = holdCreate(service, 4)
    await untilListed(service, 503)
    expect(await second.finish()).toStartWith('HTTP/1.1 200 ')
    expect(await third.finish()).toStartWith('HTTP/1.1 200 ')

    expect(await service.names()).toEqual(['1', '2', 'Fern', '4'])
  })

  test('counts a streamed list until its end, or until its client has gone', async () => {
    await using service = await startService(transport, { maxInFlight: 1 })
    addLongPlants(service.database)
    const get = rawRequest('GET', '/plants', { token: service.token })

    using reading = await requestAndWait(service.port, get)
    expect(seen(await service.list('?limit=1'))).toEqual(BUSY)
    expect(await reading.readOn()).toEndWith('0\r\n\r\n')
    await untilListed(service, 200)
    using leaving = await requestAndWait(service.port, get)
    expect(seen(await service.list('?limit=1'))).toEqual(BUSY)
    leaving.abort()
    await untilListed(service, 200)
  })

  test('takes a request again when a client has gone before its body was whole', async () => {
    await using service = await startService(transport, { maxInFlight: 1 })
    const chunked = rawRequest('POST', '/plants', {
      token: service.token,
      lines: ['Content-Type: application/json', 'Transfer-Encoding: chunked'],
      body: '5\r\n{"id"\r\n',
    })

    for (const hold of [() => holdCreate(service, 1), () => sendHalf(service.port, chunked)]) {
      using held = hold()
      await untilListed(service, 503)
      held.abort()
      await untilListed(service, 200)
    }
    expect(await service.names()).toEqual([])
  })

  test('holds for cached lists, with HEAD and If-None-Match too', async () => {
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

  test('is checked after the request itself and before its plants; requests without a token do not count', async () => {
    await using service = await startService(transport, { maxInFlight: 1, maxBodyBytes: 100 })
    const { text: reader } = await service.createToken({ scope: 'read' })
    await service.create({ id: 9, name: 'Fern' })
    const stranger = sendHalf(service.port, 'POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{')
    expect((await service.list('?limit=1')).status).toBe(200)
    stranger.abort()
    using held = holdCreate(service, 1)
    await untilListed(service, 503)

    await expectCodes(service, [
      ...ANSWERED_BEFORE_TOKENS,
      ['GET', '/readyz', {}, 200],
      ['DELETE', '/plants/1', { token: reader }, 40301],
      ...REFUSED_BY_THEMSELVES,
      ['POST', '/plants', post('{"id":9,"name":"Ivy"}'), 50303],
      ['GET', '/plants/9', {}, 50303],
      ['GET', '/plants/7', {}, 50303],
      ['DELETE', '/plants/7', {}, 50303],
    ])
    expect(await held.finish()).toStartWith('HTTP/1.1 200 ')
    expect(await service.names()).toEqual(['1', 'Fern'])
  })
})
