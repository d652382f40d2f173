import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { exchange } from '../support/raw-connection.ts'
import { type RequestOptions, SOCKET_TRANSPORTS, startService, TRANSPORTS } from './support/service.ts'

const JSON_HEADER = { 'content-type': 'application/json' }
const MAX_BODY_BYTES = 200
const TOO_LARGE = ' '.repeat(MAX_BODY_BYTES + 1)
const NOT_JSON = '{"id":"5"'
const INVALID = '{"id":"5","name":1}'

/** A request that two checks would refuse. The first has to, hence the code; 204 is the answer to OPTIONS. */
interface Rung {
  readonly name: string
  readonly send: readonly [method: string, path: string, options: RequestOptions]
  readonly wins: number
}

/** Every pair of neighbours in the contract's order that one request can violate together. */
const ladder = (readToken: string): readonly Rung[] => {
  const stranger = { token: null }
  const reader = { token: readToken }
  const body = (text: string) => ({ headers: JSON_HEADER, body: text })
  const encoded = (text: string) => ({ headers: { ...JSON_HEADER, 'content-encoding': 'gzip' }, body: text })
  return [
    { name: '404 before OPTIONS', send: ['OPTIONS', '/nothing', {}], wins: 40401 },
    { name: '404 before 405', send: ['PUT', '/nothing', {}], wins: 40401 },
    { name: '404 before 401', send: ['GET', '/nothing', stranger], wins: 40401 },
    { name: '404 before 413', send: ['POST', '/nothing', body(TOO_LARGE)], wins: 40401 },
    { name: 'OPTIONS before 401', send: ['OPTIONS', '/plants', stranger], wins: 204 },
    { name: 'OPTIONS before 40003', send: ['OPTIONS', '/plants?limit=x', {}], wins: 204 },
    { name: 'OPTIONS before 40004', send: ['OPTIONS', '/plants/x', {}], wins: 204 },
    { name: '405 before 401, no token', send: ['PUT', '/plants', stranger], wins: 40501 },
    { name: '405 before 401, invalid token', send: ['GET', '/plants/1', { token: 'nobody' }], wins: 40501 },
    { name: '405 before 403', send: ['PUT', '/plants/1', reader], wins: 40501 },
    { name: '405 before 40004', send: ['GET', '/plants/x', {}], wins: 40501 },
    { name: '405 before 413', send: ['PUT', '/plants', body(TOO_LARGE)], wins: 40501 },
    { name: '401 before 40003, no token', send: ['GET', '/plants?limit=x', stranger], wins: 40101 },
    { name: '401 before 40003, invalid token', send: ['GET', '/plants?limit=x', { token: 'nobody' }], wins: 40102 },
    { name: '401 before 40004', send: ['DELETE', '/plants/x', stranger], wins: 40101 },
    { name: '401 before 415', send: ['POST', '/plants', { ...stranger, body: 'x' }], wins: 40101 },
    { name: '401 before 413', send: ['POST', '/plants', { ...stranger, ...body(TOO_LARGE) }], wins: 40101 },
    { name: '401 before 40001', send: ['POST', '/plants', { token: 'nobody', ...body(NOT_JSON) }], wins: 40102 },
    { name: '401 before 40002', send: ['POST', '/plants', { token: 'nobody', ...body(INVALID) }], wins: 40102 },
    { name: '401 before 40402', send: ['DELETE', '/plants/7', stranger], wins: 40101 },
    { name: '403 before 40004', send: ['DELETE', '/plants/x', reader], wins: 40301 },
    { name: '403 before 40402', send: ['DELETE', '/plants/7', reader], wins: 40301 },
    { name: '403 before 415', send: ['POST', '/plants', { ...reader, body: '{}' }], wins: 40301 },
    { name: '403 before 413', send: ['POST', '/plants', { ...reader, ...body(TOO_LARGE) }], wins: 40301 },
    { name: '403 before 40001', send: ['POST', '/plants', { ...reader, ...body(NOT_JSON) }], wins: 40301 },
    { name: '403 before 40002', send: ['POST', '/plants', { ...reader, ...body(INVALID) }], wins: 40301 },
    {
      name: '40004 before 415 and 413, which a DELETE does not have',
      send: ['DELETE', '/plants/x', { headers: { 'content-type': 'text/plain' }, body: TOO_LARGE }],
      wins: 40004,
    },
    { name: '415 before 413', send: ['POST', '/plants', { body: TOO_LARGE }], wins: 41501 },
    { name: '401 before 41502', send: ['POST', '/plants', { ...stranger, ...encoded('{}') }], wins: 40101 },
    { name: '403 before 41502', send: ['POST', '/plants', { ...reader, ...encoded('{}') }], wins: 40301 },
    {
      name: '41501 before 41502',
      send: ['POST', '/plants', { headers: { 'content-encoding': 'gzip' }, body: '{}' }],
      wins: 41501,
    },
    { name: '41502 before 413', send: ['POST', '/plants', encoded(TOO_LARGE)], wins: 41502 },
    { name: '41502 before 40001', send: ['POST', '/plants', encoded(NOT_JSON)], wins: 41502 },
    { name: '41502 before 40002', send: ['POST', '/plants', encoded(INVALID)], wins: 41502 },
    {
      name: '415 before 40001',
      send: ['POST', '/plants', { headers: { 'content-type': 'text/plain' }, body: NOT_JSON }],
      wins: 41501,
    },
    { name: '413 before 40001', send: ['POST', '/plants', body(`${NOT_JSON}${TOO_LARGE}`)], wins: 41301 },
    { name: '413 before 40002', send: ['POST', '/plants', body(`${INVALID}${TOO_LARGE}`)], wins: 41301 },
    { name: '40001 before 40002', send: ['POST', '/plants', body(NOT_JSON)], wins: 40001 },
    {
      name: '40001 before 40002, nested too deep',
      send: ['POST', '/plants', body(`{"id":"5","x":${'['.repeat(64)}${']'.repeat(64)}}`)],
      wins: 40001,
    },
    { name: '40002 before 409', send: ['POST', '/plants', body('{"id":1,"name":2}')], wins: 40002 },
  ]
}

describe.each(TRANSPORTS)('the order of checks, $name', (transport) => {
  test('lets the first check win wherever two would refuse', async () => {
    await using service = await startService(transport, { maxBodyBytes: MAX_BODY_BYTES })
    const { text: readToken } = await service.createToken({ scope: 'read' })
    await service.create({ id: 1, name: 'Fern' })

    for (const { name, send, wins } of ladder(readToken)) {
      const { status, body } = await service.request(...send)
      expect({ name, wins: body?.error ?? status }).toEqual({ name, wins })
    }
    expect(await service.names()).toEqual(['Fern'])
  })
})

describe.each(SOCKET_TRANSPORTS)('a store that is locked, $name', (transport) => {
  test('is asked after everything else was looked at, and is missed before its plants are', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const invalid: readonly Rung[] = [
      { name: '40004 before 503', send: ['DELETE', '/plants/x', {}], wins: 40004 },
      { name: '415 before 503', send: ['POST', '/plants', { body: '{}' }], wins: 41501 },
      {
        name: '41502 before 503',
        send: ['POST', '/plants', { headers: { ...JSON_HEADER, 'content-encoding': 'gzip' }, body: NOT_JSON }],
        wins: 41502,
      },
      { name: '40001 before 503', send: ['POST', '/plants', { headers: JSON_HEADER, body: NOT_JSON }], wins: 40001 },
      { name: '40002 before 503', send: ['POST', '/plants', { headers: JSON_HEADER, body: INVALID }], wins: 40002 },
      {
        name: '503 before 409',
        send: ['POST', '/plants', { headers: JSON_HEADER, body: '{"id":1,"name":"Ivy"}' }],
        wins: 50303,
      },
      { name: '503 before 40402', send: ['DELETE', '/plants/7', {}], wins: 50303 },
    ]
    using lock = new Database(service.database)
    lock.run('begin immediate')

    for (const { name, send, wins } of invalid) {
      const { status, body } = await service.request(...send)
      expect({ name, wins: body?.error ?? status }).toEqual({ name, wins })
    }
    lock.run('rollback')

    expect(await service.names()).toEqual(['Fern'])
  })
})

describe.each(SOCKET_TRANSPORTS)('two Host lines, $name', (transport) => {
  test('are refused before anything else is looked at', async () => {
    await using service = await startService(transport)
    const requests = [
      'GET /nothing',
      'OPTIONS /plants',
      'PUT /plants',
      'GET /plants',
      'GET /plants?limit=x',
      'POST /plants',
    ]

    const answers = await Promise.all(
      requests.map((line) =>
        exchange(service.port, `${line} HTTP/1.1\r\nHost: x\r\nHost: y\r\nConnection: close\r\n\r\n`),
      ),
    )

    expect(answers.map(({ status, body }) => [status, JSON.parse(body).error])).toEqual(
      requests.map(() => [400, 40005]),
    )
  })
})

/** Who is answered without a byte of the body: the request's head, and the code of the answer. */
const unread = (token: string, readToken: string): Readonly<Record<string, readonly [head: string, code: number]>> => ({
  'no token': ['POST /plants HTTP/1.1\r\nContent-Type: application/json\r\n', 40101],
  'an invalid token': ['POST /plants HTTP/1.1\r\nContent-Type: application/json\r\nAuthorization: Bearer x\r\n', 40102],
  'an unknown path': [`POST /nothing HTTP/1.1\r\nAuthorization: Bearer ${token}\r\n`, 40401],
  'another method': [`PUT /plants HTTP/1.1\r\nAuthorization: Bearer ${token}\r\n`, 40501],
  'a read token': [`POST /plants HTTP/1.1\r\nAuthorization: Bearer ${readToken}\r\n`, 40301],
  'an encoding': [
    `POST /plants HTTP/1.1\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nAuthorization: Bearer ${token}\r\n`,
    41502,
  ],
  'no content type': [`POST /plants HTTP/1.1\r\nAuthorization: Bearer ${token}\r\n`, 41501],
})

describe.each(SOCKET_TRANSPORTS)('a body that never comes, $name', (transport) => {
  test('is not waited for where the head alone is refused', async () => {
    await using service = await startService(transport)
    const { text: readToken } = await service.createToken({ scope: 'read' })
    const lengths = ['Content-Length: 20\r\n', 'Transfer-Encoding: chunked\r\n']

    const answers = await Promise.all(
      Object.entries(unread(service.token, readToken)).flatMap(([name, [head, code]]) =>
        lengths.map(async (length) => {
          const { status, body } = await exchange(service.port, `${head}Host: x\r\n${length}\r\n`)
          return {
            name,
            length,
            answer: [status, body && JSON.parse(body).error],
            expected: [Math.floor(code / 100), code],
          }
        }),
      ),
    )

    for (const { name, length, answer, expected } of answers)
      expect([name, length, ...answer]).toEqual([name, length, ...expected])
  })

  test('is not waited for where its length alone is refused, and is where nothing is', async () => {
    await using service = await startService(transport, { maxBodyBytes: MAX_BODY_BYTES })
    const head = `POST /plants HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer ${service.token}\r\n`

    const tooLong = await exchange(service.port, `${head}Content-Length: ${MAX_BODY_BYTES + 1}\r\n\r\n`)
    const fits = await exchange(
      service.port,
      `${head}Expect: 100-continue\r\nContent-Length: ${MAX_BODY_BYTES}\r\n\r\n`,
      { onFirst: '{"id":1,"name":"Fern"}'.padEnd(MAX_BODY_BYTES) },
    )

    expect(JSON.parse(tooLong.body)).toMatchObject({ error: 41301 })
    expect(fits.text).toEndWith('\r\n\r\n{"name":"Fern"}')
  })
})

describe.each(TRANSPORTS.filter(({ name }) => name === 'in process'))('a body that is watched, $name', (transport) => {
  test('is not touched for a stranger, and is read for who may write', async () => {
    await using service = await startService(transport)
    const { text: readToken } = await service.createToken({ scope: 'read' })
    const reads = async (path: string, options: RequestOptions) => {
      let pulls = 0
      const body = new ReadableStream(
        {
          pull(controller) {
            pulls += 1
            controller.enqueue(new TextEncoder().encode('{"id":1,"name":"Fern"}'))
            controller.close()
          },
        },
        { highWaterMark: 0 },
      )
      const { status } = await service.request('POST', path, { headers: JSON_HEADER, ...options, body })
      return [status, pulls]
    }

    expect(await reads('/plants', { token: null })).toEqual([401, 0])
    expect(await reads('/plants', { token: 'nobody' })).toEqual([401, 0])
    expect(await reads('/plants', { token: readToken })).toEqual([403, 0])
    expect(await reads('/plants', { headers: {} })).toEqual([415, 0])
    expect(await reads('/plants/1', {})).toEqual([405, 0])
    expect(await reads('/nothing', {})).toEqual([404, 0])
    expect(await reads('/plants', {})).toEqual([200, 1])
  })
})
