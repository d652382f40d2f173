import { describe, expect, test } from 'bun:test'
import { makeCertificate, OPENSSL } from '../../support/certificates.ts'
import { makeFolder } from '../../support/folder.ts'
import { formatRequest } from '../../support/paced-requests.ts'
import { openConnection } from '../../support/raw-connection.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const LIMIT_BYTES = 1000
const CHUNKED = 'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n'
/** A part of a body (RFC 9112 §7.1) that is not the last one. */
const CHUNK = `64\r\n${'x'.repeat(100)}\r\n`

/** A plant whose body has that many bytes. */
const plantOf = (bytes: number) => `{"id":1,"name":"${'x'.repeat(bytes - '{"id":1,"name":""}'.length)}"}`

describe.each(SOCKET_TRANSPORTS)('a body, $name', (transport) => {
  test.skipIf(lacks(OPENSSL))('is taken up to the limit and refused beyond it over TLS, too', async () => {
    using folder = makeFolder()
    const tls = await makeCertificate(folder.path, 'own')
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES, tls })
    const send = async (bytes: number) => (await service.exchange('POST', '/plants', plantOf(bytes))).status

    expect([await send(LIMIT_BYTES + 1), await send(70_000), await send(LIMIT_BYTES)]).toEqual([413, 413, 200])
  })

  test('in chunks that never end is refused', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    using connection = await openConnection(service.port)

    await connection.send(formatRequest('POST', '/plants', service.token, undefined, CHUNKED))
    await until('the server answers', async () => {
      await connection.send(CHUNK)
      return connection.isClosed() || connection.text().endsWith('}')
    })

    expect(connection.text()).toStartWith('HTTP/1.1 413 ')
    expect(connection.text()).toContain('"error":41301')
  })
})
