import { describe, expect, test } from 'bun:test'
import { PAGE_PLANTS } from '../../../src/http/lists/render-list.ts'
import { makeCertificate, OPENSSL, openssl } from '../../support/certificates.ts'
import { readPage } from '../../support/docs.ts'
import { makeFolder } from '../../support/folder.ts'
import { answersTo, exchange } from '../../support/raw-connection.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { type Row, readTable, requestsOf } from '../support/http11.ts'
import { createMany } from '../support/long-lists.ts'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const PIPELINED = 'a request behind one whose answer has to wait'
const HALF_CLOSED = 'a client that ends its side of the connection behind a write'
const CLOSE = '`Connection: close`'
const ALPN = 'a client of TLS that offers protocols (ALPN)'
const HTTP10_HEAD = '`HEAD` of a list without a limit, with HTTP/1.0'

const GROUPS = Object.keys(readTable(''))

/** Bytes behind a last chunk are refused wherever they are cut, but they keep a plant from being stored only if they come with it. */
const CUT_ANYWHERE = GROUPS.filter((group) => group !== 'trailers')
const CREATE = String.raw`{post}Content-Length: {size}\r\n\r\n{plant}`
const CLOSING = String.raw`Connection: close\r\n\r\n`
/** Requests up to this length are cut into single bytes, longer ones into pieces of as many. */
const BYTEWISE_MAX_BYTES = 1000
const CONNECTIONS = 100

const rowsOf = (service: Service, group: string): readonly Row[] => readTable(service.token)[group] ?? []

/** A message ends in the same way with TLS, and with a Host that makes no URL. */
const FRAMING = ['lengths', 'chunks', 'trailers', 'unreadBodies']
const OTHER_WAYS = [
  ['over TLS', true, 'a'],
  ['with an empty Host', false, ''],
  ['with a Host that no host can have', false, 'a b'],
] as const

/** The answers to each row, sent whole or in pieces, on some connections at a time. */
async function ask({ connect: open }: Service, rows: readonly Row[], pieceBytes: (sent: string) => number) {
  const answers: Record<string, string> = {}
  const waiting = [...rows]
  const connect = async () => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      const { name, sent } = row
      using connection = await open()
      answers[name] = (await answersTo(connection, sent, pieceBytes(sent))).join(' ')
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, connect))
  return answers
}

const expected = (rows: readonly Row[]) => Object.fromEntries(rows.map(({ name, answers }) => [name, answers]))

/** The names of the plants whose creation is answered with success, in the order of their ids. */
const created = (rows: readonly Row[]) =>
  rows.flatMap(({ sent, answers }) => (/\b200\b/.test(answers) ? (/"name":"(p\d+)"/.exec(sent)?.[1] ?? []) : []))

describe.each(SOCKET_TRANSPORTS)('HTTP/1.1, $name', (transport) => {
  test.each(GROUPS)('is answered as the table says: %s', async (group) => {
    await using service = await startService(transport)
    const rows = rowsOf(service, group)

    const answers = await ask(service, rows, (sent) => sent.length)

    expect(answers).toEqual(expected(rows))
    expect(await service.names()).toEqual(created(rows))
  })

  test.each(CUT_ANYWHERE)('is answered the same wherever its bytes are cut: %s', async (group) => {
    await using service = await startService(transport)
    const rows = rowsOf(service, group)

    const answers = await ask(service, rows, ({ length }) => (length <= BYTEWISE_MAX_BYTES ? 1 : BYTEWISE_MAX_BYTES))

    expect(answers).toEqual(expected(rows))
    expect(await service.names()).toEqual(created(rows))
  })

  test.skipIf(lacks(OPENSSL)).each(OTHER_WAYS)('frames messages as the table says %s', async (_, isTls, host) => {
    using folder = makeFolder()
    await using service = await startService(transport, isTls ? { tls: await makeCertificate(folder.path, 'own') } : {})
    const table = readTable(service.token)
    const rows = FRAMING.flatMap((group) => table[group] ?? []).map(({ sent, ...row }) => ({
      ...row,
      sent: sent.replace('Host: a\r\n', `Host: ${host}\r\n`),
    }))

    const answers = await ask(service, rows, ({ length }) => length)

    expect(answers).toEqual(expected(rows))
    expect(await service.names()).toEqual(created(rows))
  })

  test('takes nothing behind a last chunk for a request, even if it comes late', async () => {
    await using service = await startService(transport)

    const answers = await ask(service, rowsOf(service, 'trailers'), () => 1)

    // A body that no operation reads has one answer.
    for (const [name, answer] of Object.entries(answers))
      expect([name, answer]).toEqual([name, expect.stringMatching(/^(?:(?:200 )?400|40101|40402)$/)])
  })

  test('is refused by the runtime without a body and a Date', async () => {
    await using service = await startService(transport)
    const bytesOf = requestsOf(service.token)

    const refused = ['{get}X : a\\r\\n\\r\\n', '{get}X: {20000*a}\\r\\n\\r\\n', 'GET / HTTP/1.2\\r\\n{auth}\\r\\n']
    for (const text of refused) {
      const { body, headers, isClosed } = await exchange(service.port, bytesOf(text))
      expect([body, [...headers], isClosed]).toEqual(['', [['connection', 'close']], true])
    }
  })

  test('has no chunks in version 1.0: the end of a list without a limit is the end of the connection', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const bytesOf = requestsOf(service.token)

    const list = await exchange(service.port, bytesOf('GET /plants HTTP/1.0\\r\\n{auth}\\r\\n'))
    const itsHead = await exchange(service.port, bytesOf('HEAD /plants HTTP/1.0\\r\\n{auth}\\r\\n'))

    expect([list.headers.get('transfer-encoding'), list.body, list.isClosed]).toEqual([null, '[{"name":"Fern"}]', true])
    expect([itsHead.headers.get('transfer-encoding'), itsHead.body, itsHead.isClosed]).toEqual(['chunked', '', true])
  })

  test('closes the connection on Connection: close, and does not repeat the line in the answer', async () => {
    await using service = await startService(transport)
    const answer = await exchange(service.port, requestsOf(service.token)(`{get}${CLOSING}`))

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
    const bytesOf = requestsOf(service.token)

    const { text } = await exchange(service.port, bytesOf(CREATE) + bytesOf(CREATE))

    const answered = text.match(/\{"name":"p\d"\}/g)?.map((plant) => JSON.parse(plant).name) ?? []
    expect(await service.names()).toEqual(expect.arrayContaining(answered))
    // The first was under way when the connection ended, and goes on to its end.
    await until('the first is stored', async (see) => see(await service.names()).includes('p1'))
  })

  test('ends a connection on which a request comes behind a list of 501 plants, and answers both behind one of 500', async () => {
    await using service = await startService(transport)
    await createMany(service.store)
    const bytesOf = requestsOf(service.token)
    const statuses = async (limit: number) => {
      const pair = `GET /plants?limit=${limit} HTTP/1.1\\r\\n{auth}\\r\\n{get}${CLOSING}`
      return (await exchange(service.port, bytesOf(pair))).text.match(/HTTP\/1\.1 \d+/g)
    }

    expect(await statuses(PAGE_PLANTS)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
    expect(await statuses(PAGE_PLANTS + 1)).toBeNull()
  })

  test('stores the plant of a client that ends its side behind the request, and answers success or nothing', async () => {
    await using service = await startService(transport)
    using connection = await service.connect()

    await connection.send(requestsOf(service.token)(CREATE))
    connection.endOwnSide()
    await connection.until(connection.isClosed)

    expect(connection.text()).toMatch(/^$|^HTTP\/1\.1 200 OK\r\n.*\{"name":"p1"\}$/s)
    await until('the first is stored', async (see) => see(await service.names()).includes('p1'))
  })
})

describe('the table of HTTP/1.1', () => {
  const rows = Object.values(readTable('')).flat()

  test('has each row once', () => {
    expect(rows.length).toBeGreaterThan(200)
    expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
  })

  test('follows RFC 9110 and RFC 9112, or the reference lists the difference', async () => {
    const listed = new Set([
      ...rows.map(({ listed }) => listed).filter((line) => line !== ''),
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
