import { describe, expect, test } from 'bun:test'
import { PAGE_PLANTS } from '../../../src/http/lists/render-list.ts'
import { makeCertificate, OPENSSL, openssl } from '../../support/certificates.ts'
import { readPage } from '../../support/docs.ts'
import { makeFolder } from '../../support/folder.ts'
import { answersTo, exchange, openConnection } from '../../support/raw-connection.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { createMany } from '../support/long-lists.ts'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'
import { chunks, lengths, trailers, unreadBodies } from './http11/framing.ts'
import { headers, methods, sizes, targets, versions } from './http11/heads.ts'
import { type Row, requestsOf } from './http11/requests.ts'

const PIPELINED = 'a request behind one whose answer has to wait'
const HALF_CLOSED = 'a client that ends its side of the connection behind a write'
const CLOSE = '`Connection: close`'
const ALPN = 'a client of TLS that offers protocols (ALPN)'
const HTTP10_HEAD = '`HEAD` of a list without a limit, with HTTP/1.0'

const TABLE = { lengths, chunks, trailers, unreadBodies, headers, targets, methods, versions, sizes }
type Group = keyof typeof TABLE

/** Bytes behind a last chunk are refused wherever they are cut, but they keep a plant from being stored only if they come with it. */
const CUT_ANYWHERE = Object.keys(TABLE).filter((group) => group !== 'trailers') as Group[]
/** Requests up to this length are cut into single bytes, longer ones into pieces of as many. */
const BYTEWISE_MAX_BYTES = 1000
const CONNECTIONS = 32

const rowsOf = (service: Service, groups: readonly Group[]): Row[] => {
  const requests = requestsOf(service.token)
  return groups.flatMap((group) => TABLE[group](requests))
}

/** The answers to each row, sent whole or in pieces, on some connections at a time. */
async function ask({ port }: Service, rows: readonly Row[], pieceBytes: (sent: string) => number) {
  const answers: Record<string, string> = {}
  const waiting = [...rows]
  const connect = async () => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      const [name, sent] = row
      answers[name] = (await answersTo(port, sent, pieceBytes(sent))).join(' ')
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, connect))
  return answers
}

const expected = (rows: readonly Row[]) => Object.fromEntries(rows.map(([name, , answers]) => [name, answers]))

/** The names of the plants whose creation is answered with success. */
const created = (rows: readonly Row[]) =>
  rows.flatMap(([, sent, answers]) => (/\b200\b/.test(answers) ? (/"name":"(p\d+)"/.exec(sent)?.[1] ?? []) : []))

describe.each(SOCKET_TRANSPORTS)('HTTP/1.1, $name', (transport) => {
  test.each(Object.keys(TABLE) as Group[])('is answered as the table says: %s', async (group) => {
    await using service = await startService(transport)
    const rows = rowsOf(service, [group])

    const answers = await ask(service, rows, (sent) => sent.length)

    expect(answers).toEqual(expected(rows))
    expect(await service.names()).toEqual(created(rows))
  })

  test.each(CUT_ANYWHERE)('is answered the same wherever its bytes are cut: %s', async (group) => {
    await using service = await startService(transport)
    const rows = rowsOf(service, [group])

    const answers = await ask(service, rows, ({ length }) => (length <= BYTEWISE_MAX_BYTES ? 1 : BYTEWISE_MAX_BYTES))

    expect(answers).toEqual(expected(rows))
    expect(await service.names()).toEqual(created(rows))
  })

  test('takes nothing behind a last chunk for a request, even if it comes late', async () => {
    await using service = await startService(transport)

    const answers = await ask(service, rowsOf(service, ['trailers']), () => 1)

    for (const [name, answer] of Object.entries(answers))
      expect([name, answer]).toEqual([name, expect.stringMatching(/^(?:200 )?400$/)])
  })

  test('is refused by the runtime without a body and a Date', async () => {
    await using service = await startService(transport)
    const { get, head } = requestsOf(service.token)

    for (const sent of [get('X : a\r\n'), get(`X: ${'a'.repeat(20_000)}\r\n`), head('GET / HTTP/1.2')]) {
      const { body, headers, isClosed } = await exchange(service.port, sent)
      expect([body, [...headers], isClosed]).toEqual(['', [['connection', 'close']], true])
    }
  })

  test('has no chunks in version 1.0: the end of a list without a limit is the end of the connection', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const { head } = requestsOf(service.token)

    const list = await exchange(service.port, head('GET /plants HTTP/1.0'))
    const itsHead = await exchange(service.port, head('HEAD /plants HTTP/1.0'))

    expect([list.headers.get('transfer-encoding'), list.body, list.isClosed]).toEqual([null, '[{"name":"Fern"}]', true])
    expect([itsHead.headers.get('transfer-encoding'), itsHead.body, itsHead.isClosed]).toEqual(['chunked', '', true])
  })

  test('closes the connection on Connection: close, and does not repeat the line in the answer', async () => {
    await using service = await startService(transport)
    const { get } = requestsOf(service.token)

    const answer = await exchange(service.port, get('Connection: close\r\n'))

    expect([answer.status, answer.headers.get('connection'), answer.isClosed]).toEqual([200, null, true])
  })

  test.skipIf(lacks(OPENSSL))('is spoken behind TLS without ALPN, whatever the client offers', async () => {
    using folder = makeFolder()
    await using service = await startService(transport, { tls: await makeCertificate(folder.path, 'own') })

    for (const offered of ['http/1.1', 'h2,http/1.1', 'h2']) {
      const output = await openssl('s_client', '-connect', `127.0.0.1:${service.port}`, '-alpn', offered)
      expect([offered, output]).toEqual([offered, expect.stringContaining('No ALPN negotiated')])
    }
  })

  test('ends a connection on which a request comes while one waits for the disk, and stores what it answered', async () => {
    await using service = await startService(transport)
    const { sized } = requestsOf(service.token)

    const { text } = await exchange(service.port, sized('Content-Length: #\r\n') + sized('Content-Length: #\r\n'))

    const answered = text.match(/\{"name":"p\d"\}/g)?.map((plant) => JSON.parse(plant).name) ?? []
    expect(await service.names()).toEqual(expect.arrayContaining(answered))
    // The first was under way when the connection ended, and goes on to its end.
    await until('the first is stored', async () => (await service.names()).includes('p1'))
  })

  test('ends a connection on which a request comes behind a list of 501 plants, and answers both behind one of 500', async () => {
    await using service = await startService(transport)
    await createMany(service.store)
    const { get } = requestsOf(service.token)
    const statuses = async (limit: number) => {
      const pair = get('', `/plants?limit=${limit}`) + get('Connection: close\r\n')
      return (await exchange(service.port, pair)).text.match(/HTTP\/1\.1 \d+/g)
    }

    expect(await statuses(PAGE_PLANTS)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
    expect(await statuses(PAGE_PLANTS + 1)).toBeNull()
  })

  test('stores the plant of a client that ends its side behind the request, and answers success or nothing', async () => {
    await using service = await startService(transport)
    const { sized } = requestsOf(service.token)

    using connection = await openConnection(service.port)

    await connection.send(sized('Content-Length: #\r\n'))
    connection.endOwnSide()
    await connection.until(connection.isClosed)

    expect(connection.text()).toMatch(/^$|^HTTP\/1\.1 200 OK\r\n.*\{"name":"p1"\}$/s)
    await until('the first is stored', async () => (await service.names()).includes('p1'))
  })
})

describe('the table of HTTP/1.1', () => {
  const rows = Object.values(TABLE).flatMap((make) => make(requestsOf('')))

  test('has a name for each row', () => {
    for (const make of Object.values(TABLE)) {
      const names = make(requestsOf('')).map(([name]) => name)
      expect(new Set(names).size).toBe(names.length)
    }
  })

  test('follows RFC 9110 and RFC 9112, or the reference lists the difference', async () => {
    const listed = new Set([
      ...rows.flatMap(([, , , line]) => line ?? []),
      PIPELINED,
      HALF_CLOSED,
      HTTP10_HEAD,
      CLOSE,
      ALPN,
    ])
    const [, table = ''] =
      /<!-- http: each row is tested -->(.*?)<!-- \/http -->/s.exec(await readPage('docs/reference/http.md')) ?? []
    const told = table.split('\n').flatMap((line) => /^\| (.+?) \| .+ \| .+ \|$/.exec(line)?.[1] ?? [])

    expect(told.slice(1).sort()).toEqual([...listed].sort())
  })
})
