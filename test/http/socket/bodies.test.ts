import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { makeCertificate, OPENSSL } from '../../support/certificates.ts'
import { serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { metricsUrlOf, scrape } from '../../support/metrics.ts'
import { openConnection } from '../../support/raw-connection.ts'
import { lacks } from '../../support/requirement.ts'
import { SLACK_MS } from '../../support/slack.ts'
import { type Service, startService } from '../support/service.ts'
import { type ServiceOptions, SOCKET_TRANSPORTS, type Transport } from '../support/transports.ts'

const LIMIT_BYTES = 1000
/** How long the server waits for the next part of a body, and for a body that the runtime hides. */
const STALL_MS = 2000
const HIDDEN_MS = 500
/** How exactly timers are measured from outside. */
const EARLY_MS = 100
const DROP_MS = 500
const DROPS = 6

type Wire = Readonly<{ name: string; host: string; isTls?: boolean; isUnix?: boolean; isMetrics?: boolean }>

/** Where a server listens, and what the clients there call it: of some hosts no URL can be made. */
const WIRES: readonly Wire[] = [
  { name: 'over TCP', host: 'a' },
  { name: 'over TLS', host: 'a', isTls: true },
  { name: 'at a unix socket', host: 'a', isUnix: true },
  { name: 'with an empty Host', host: '' },
  { name: 'over TLS with an empty Host', host: '', isTls: true },
  { name: 'at the address of the metrics', host: 'a', isMetrics: true },
]
/** Those where an operation takes a body. */
const TAKING_WIRES = WIRES.filter(({ isMetrics }) => !isMetrics)

/** A service, and a function that makes the head of a request to it. */
async function startOn(transport: Transport, wire: Wire, options: ServiceOptions = {}) {
  const { host, isTls, isUnix, isMetrics } = wire
  const folder = makeFolder()
  const tls = isTls && { tls: await makeCertificate(folder.path, 'own') }
  const socket = isUnix && { socketPath: join(folder.path, 'socket') }
  const service = await startService(transport, { maxBody: LIMIT_BYTES, ...options, ...tls, ...socket })
  // Only the command serves metrics, so it serves the same database.
  const metered = isMetrics ? await serve(service.database, ['--metrics-listen', '127.0.0.1:0']) : undefined
  const metricsPort = metered && Number(new URL(metricsUrlOf(metered)).port)
  return {
    ...service,
    connect: metricsPort === undefined ? service.connect : () => openConnection(metricsPort),
    /** Waits until the answers to earlier requests are ready. A put, and the answer with the metrics, take longer than any of them. */
    untilReady: async () =>
      metered === undefined
        ? service.put(0, { name: 'Ivy' }, { token: (await service.createToken({ user: 'other' })).text })
        : scrape(metered),
    /** The head of a request with that token. */
    headOf(request: string, token: string | undefined, lines: readonly string[]) {
      const credentials = token === undefined ? [] : [`Authorization: Bearer ${token}`]
      return `${[`${request} HTTP/1.1`, `Host: ${host}`, ...credentials, ...lines].join('\r\n')}\r\n\r\n`
    },
    async [Symbol.asyncDispose]() {
      await metered?.kill()
      await service[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

/** The last chunk. The runtime takes its first line for the end of the body. */
const LAST = '0\r\n\r\n'

/** The ways to send a body: the line of the head that announces it, and the bytes (RFC 9112 §6). */
const FORMS = [
  { announced: (body: string) => `Content-Length: ${body.length}`, sent: (body: string) => body, ends: false },
  {
    announced: () => 'Transfer-Encoding: chunked',
    sent: (body: string) => `${body.length.toString(16)}\r\n${body}\r\n${LAST}`,
    /** Whether the answer to a body that no operation reads ends the connection. */
    ends: true,
  },
]

const TYPE = 'Content-Type: application/json'
/** What follows an answer that ends its connection. */
const ENDED = { connection: 'close', next: undefined }
const NEXT = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'

/** A plant whose body has that many bytes. */
const plantOf = (id: number, bytes: number) =>
  `{"id":${id},"name":"${'x'.repeat(bytes - `{"id":${id},"name":""}`.length)}"}`

/** Requests with a body that no operation takes: who sends what, a line of the head, the status or the code of the error, and the size. */
const UNTAKEN: readonly (readonly [who: string, request: string, line: string, answer: number, bytes?: number])[] = [
  ['me', 'POST /plants', 'Host: b', 40005],
  ['nobody', 'POST /nothing', TYPE, 40401],
  ['nobody', 'OPTIONS /plants', TYPE, 204],
  ['me', 'PUT /plants', TYPE, 40501],
  ['nobody', 'POST /healthz', TYPE, 40501],
  ['nobody', 'POST /', TYPE, 40501],
  ['nobody', 'POST /docs', TYPE, 40501],
  ['nobody', 'POST /plants', TYPE, 40101],
  ['nobody', 'POST /plants', TYPE, 40101, 200_000],
  ['nobody', 'POST /plants', TYPE, 40101, 5_000_000],
  ['unknown', 'POST /plants', TYPE, 40102],
  ['spent', 'POST /plants', TYPE, 42901],
  ['reader', 'POST /plants', TYPE, 40301],
  ['nobody', 'PUT /plants/1', TYPE, 40101],
  ['nobody', 'PUT /plants/1', TYPE, 40101, 5_000_000],
  ['reader', 'PUT /plants/1', TYPE, 40301],
  ['me', 'PUT /plants/x', TYPE, 40004],
  ['me', 'PUT /plants/1', `${TYPE}\r\nContent-Range: bytes 0-1/2`, 40006],
  ['me', 'PUT /plants/1', 'Content-Type: text/plain', 41501],
  ['me', 'PUT /plants/1', TYPE, 41301, 200_000],
  ['me', 'DELETE /plants/x', TYPE, 40004],
  ['me', 'DELETE /plants/9', TYPE, 40402],
  ['me', 'DELETE /plants/{form}', TYPE, 204],
  ['me', 'POST /plants', 'Content-Type: text/plain', 41501],
  ['me', 'POST /plants', `${TYPE}\r\nContent-Encoding: gzip`, 41502],
  ['me', 'POST /plants', TYPE, 41301, LIMIT_BYTES + 1],
  ['me', 'POST /plants', TYPE, 41301, 200_000],
]

/** The beginnings of such bodies, behind which nothing comes, and the status of the answer. */
const STALLED: readonly (readonly [who: string, request: string, line: string, sent: string, status: number])[] = [
  ['nobody', 'POST /plants', 'Content-Length: 2000', '', 401],
  ['nobody', 'POST /plants', 'Content-Length: 2000', 'x', 401],
  ['me', 'POST /plants', 'Content-Length: 2000', 'x', 413],
  ['me', 'POST /plants', 'Transfer-Encoding: chunked', `7d0\r\n${'x'.repeat(2000)}\r\n`, 413],
  ['nobody', 'PUT /plants/1', 'Content-Length: 2000', 'x', 401],
  ['me', 'PUT /plants/1', 'Content-Length: 2000', 'x', 413],
  ['me', 'PUT /plants/1', 'Content-Length: 20\r\nContent-Range: bytes 0-1/2', 'x', 400],
  ['me', 'DELETE /plants/9', 'Content-Length: 2000', 'x', 404],
]

/** Requests whose body the runtime hides. The first two have a cached list as their answer. */
const HIDDEN = [
  ...['GET /plants?limit=1', 'HEAD /plants?limit=1', 'GET /plants', 'HEAD /plants', 'GET /plants/0', 'GET /healthz'],
  ...['GET /', 'GET /docs'],
]
const HIDDEN_AT_METRICS = ['GET /metrics', 'HEAD /metrics']

describe.skipIf(lacks(OPENSSL)).each(SOCKET_TRANSPORTS)('a body, $name', (transport) => {
  test.each(TAKING_WIRES)('is taken up to the limit and refused beyond it, $name', async (wire) => {
    await using service = await startOn(transport, wire)
    const send = async (request: string, body: string, { announced, sent }: (typeof FORMS)[number]) => {
      using connection = await service.connect()
      const head = service.headOf(request, service.token, [TYPE, announced(body)])
      return (await connection.request(head + sent(body))).status
    }

    for (const [id, form] of FORMS.entries()) {
      for (const request of ['POST /plants', `PUT /plants/${id}`]) {
        const statuses: number[] = []
        for (const bytes of [LIMIT_BYTES + 1, 3_000_000, LIMIT_BYTES])
          statuses.push(await send(request, plantOf(id, bytes), form))
        expect(statuses).toEqual([413, 413, 200])
      }
    }
  })

  test.each(WIRES)(
    'that no operation takes ends before the answer, and the connection goes on unless it came in chunks, $name',
    async (wire) => {
      await using service = await startOn(transport, wire, { rateLimit: { requests: 1, periodMs: 3_600_000 } })
      for (const id of FORMS.keys())
        await service.create({ id, name: 'Fern' }, { token: (await service.createToken()).text })
      const { text: spent } = await service.createToken()
      await service.list('?limit=0', { token: spent })
      const tokens: Record<string, () => Promise<string | undefined>> = {
        nobody: async () => undefined,
        unknown: async () => 'unknown',
        spent: async () => spent,
        me: async () => (await service.createToken()).text,
        reader: async () => (await service.createToken({ scope: 'read' })).text,
      }

      for (const [who, request, line, expected, bytes = LAST.length] of UNTAKEN) {
        for (const [index, { announced, sent, ends }] of FORMS.entries()) {
          const body = 'x'.repeat(bytes)
          const lines = [line, announced(body)]
          const head = service.headOf(request.replace('{form}', `${index}`), await tokens[who]?.(), lines)
          using connection = await service.connect()
          await connection.send(head + sent(body).slice(0, -LAST.length))
          await service.untilReady()
          const before = connection.text()
          const { status, headers, body: text } = await connection.request(sent(body).slice(-LAST.length))
          const next = ends ? await connection.ended : (await connection.request(NEXT)).status

          const answer = text === '' ? status : JSON.parse(text).error
          const all = { request, before, answer, connection: headers.get('connection'), next }
          const wanted = wire.isMetrics ? { answer: 40401, next: 404 } : { answer: expected, next: 200 }
          expect(all).toEqual({ request, before: '', connection: null, ...wanted, ...(ends && ENDED) })
        }
      }
    },
  )

  test.concurrent.each(WIRES)('that stalls is answered after 2 s by the end of the connection, $name', async (wire) => {
    await using service = await startOn(transport, wire)
    const head = service.headOf('POST /plants', undefined, ['Content-Length: 2000'])
    using slow = await service.connect()
    await slow.send(head)

    const stalls = STALLED.map(async ([who, request, line, sent, status]) => {
      const token = who === 'me' ? service.token : undefined
      const text = await outlast(service, service.headOf(request, token, [TYPE, line]) + sent, STALL_MS)
      expect(text).toStartWith(`HTTP/1.1 ${wire.isMetrics ? 404 : status} `)
    })
    for (let drops = 0; drops < DROPS; drops++) {
      await Bun.sleep(DROP_MS)
      await slow.send('x'.repeat(100))
    }
    const { status, headers } = await slow.request('x'.repeat(2000 - DROPS * 100))
    await Promise.all(stalls)

    expect([status, headers.get('connection')]).toEqual([wire.isMetrics ? 404 : 401, null])
  })

  test.concurrent.each(WIRES)('of a GET or HEAD ends the connection behind the answer, $name', async (wire) => {
    await using service = await startOn(transport, wire)
    await service.create({ id: 0, name: 'Fern' })
    const outlastAll = () =>
      (wire.isMetrics ? HIDDEN_AT_METRICS : HIDDEN).map(async (request) => {
        const lines = ['Accept: text/html', 'Content-Length: 5']
        const text = await outlast(service, service.headOf(request, service.token, lines), HIDDEN_MS)
        expect(text).toStartWith('HTTP/1.1 200 ')
      })

    await Promise.all(outlastAll())
    // Now the first list is cached.
    await Promise.all(outlastAll())
  })
})

/** Sends bytes, and nothing more. Expects that after this time the server answers and ends the connection. Returns the answer. */
async function outlast({ connect: open }: Service, bytes: string, ms: number): Promise<string> {
  using connection = await open()
  const startMs = performance.now()
  await connection.send(bytes)
  const answer = await connection.readToEnd()
  expect(answer).toMatch(/^connection: close\r$/im)
  expect(performance.now() - startMs).toBeWithin(ms - EARLY_MS, ms + SLACK_MS)
  return answer
}
