import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { makeCertificate, OPENSSL } from '../../support/certificates.ts'
import { makeFolder } from '../../support/folder.ts'
import { formatRequest } from '../../support/paced-requests.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { startService } from '../support/service.ts'
import { type ServiceOptions, SOCKET_TRANSPORTS, type Transport } from '../support/transports.ts'

const LIMIT_BYTES = 1000
const CHUNKED = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n'
/** A part of a body (RFC 9112 §7.1) that is not the last one. */
const CHUNK = `64\r\n${'x'.repeat(100)}\r\n`

/** Where a server listens, and what the clients there call it: of some hosts no URL can be made. */
const WIRES = [
  { name: 'over TCP', host: 'a' },
  { name: 'over TLS', host: 'a', isTls: true },
  { name: 'at a unix socket', host: 'a', isUnix: true },
  { name: 'with an empty Host', host: '' },
  { name: 'over TLS with an empty Host', host: '', isTls: true },
]

type Wire = Readonly<{ host: string; isTls?: boolean; isUnix?: boolean }>

/** A service, and a function that makes the head of a request to it. */
async function startOn(transport: Transport, { host, isTls, isUnix }: Wire, options: ServiceOptions = {}) {
  const folder = makeFolder()
  const tls = isTls && { tls: await makeCertificate(folder.path, 'own') }
  const socket = isUnix && { socketPath: join(folder.path, 'socket') }
  const service = await startService(transport, { maxBodyBytes: LIMIT_BYTES, ...options, ...tls, ...socket })
  let lastId = 0
  return {
    ...service,
    /** The head of a request with that token, and the id by which the log names the request. */
    headOf(request: string, token: string | undefined, lines: readonly string[]) {
      const id = `request${++lastId}`
      const credentials = token === undefined ? [] : [`Authorization: Bearer ${token}`]
      const all = [`${request} HTTP/1.1`, `Host: ${host}`, `X-Request-Id: ${id}`, ...credentials, ...lines]
      return { id, head: `${all.join('\r\n')}\r\n\r\n` }
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

/** The last chunk. The runtime takes its first line for the end of the body. */
const LAST = '0\r\n\r\n'

/** The ways to send a body: the line of the head that announces it, and the bytes (RFC 9112 §6). */
const FORMS = [
  { announced: (body: string) => `Content-Length: ${body.length}`, sent: (body: string) => body },
  {
    announced: () => 'Transfer-Encoding: chunked',
    sent: (body: string) => `${body.length.toString(16)}\r\n${body}\r\n${LAST}`,
  },
]

const TYPE = 'Content-Type: application/json'

/** A plant whose body has that many bytes. */
const plantOf = (id: number, bytes: number) =>
  `{"id":${id},"name":"${'x'.repeat(bytes - `{"id":${id},"name":""}`.length)}"}`

describe.skipIf(lacks(OPENSSL)).each(SOCKET_TRANSPORTS)('a body, $name', (transport) => {
  test.each(WIRES)('is taken up to the limit and refused beyond it, $name', async (wire) => {
    await using service = await startOn(transport, wire)
    using connection = await service.connect()
    const send = async (body: string, { announced, sent }: (typeof FORMS)[number]) => {
      const { head } = service.headOf('POST /plants', service.token, [TYPE, announced(body)])
      return (await connection.request(head + sent(body))).status
    }

    for (const [id, form] of FORMS.entries()) {
      const statuses: number[] = []
      for (const bytes of [LIMIT_BYTES + 1, 3_000_000, LIMIT_BYTES]) statuses.push(await send(plantOf(id, bytes), form))
      expect(statuses).toEqual([413, 413, 200])
    }
  })

  test('in chunks that never end is refused', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    using connection = await service.connect()

    await connection.send(formatRequest('POST', '/plants', service.token, undefined, CHUNKED))
    await until('the server answers', async () => {
      await connection.send(CHUNK)
      return connection.isClosed() || connection.text().endsWith('}')
    })

    expect(connection.text()).toStartWith('HTTP/1.1 413 ')
    expect(connection.text()).toContain('"error":41301')
  })
})
