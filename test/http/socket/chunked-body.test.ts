import { describe, expect, test } from 'bun:test'
import { openConnection } from '../../support/raw-connection.ts'
import { rawRequest } from '../support/raw-request.ts'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const LIMIT_BYTES = 1000
const REFUSAL = { error: 41301, message: expect.stringMatching(/larger/) }
const CHUNKED = ['Content-Type: application/json', 'Transfer-Encoding: chunked']

const nameOf = (bytes: number, id = 1) => 'x'.repeat(bytes - `{"id":${id},"name":""}`.length)
/** A plant whose body has that many bytes. */
const plantOf = (bytes: number, id = 1) => `{"id":${id},"name":"${nameOf(bytes, id)}"}`

describe.each(SOCKET_TRANSPORTS)('a body, $name', (transport) => {
  async function send(service: Service, body: string) {
    const answer = await service.exchange('POST', '/plants', { lines: CHUNKED, body })
    return [answer.status, JSON.parse(answer.body)]
  }

  test.each([LIMIT_BYTES + 1, 600, 1])('in chunks of %i bytes is refused as soon as it is too long', async (bytes) => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })

    expect(await send(service, `${chunks(plantOf(LIMIT_BYTES), bytes)}0\r\n\r\n`)).toEqual([
      200,
      { name: nameOf(LIMIT_BYTES) },
    ])
    const tooLong = chunks(plantOf(LIMIT_BYTES + 1, 2), bytes)
    for (const end of ['', '0\r\n\r\n']) expect(await send(service, tooLong + end)).toEqual([413, REFUSAL])
    expect(await service.names()).toEqual([nameOf(LIMIT_BYTES)])
  })

  test('in chunks that never end is refused', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    using connection = await openConnection(service.port)

    await connection.send(rawRequest('POST', '/plants', { token: service.token, lines: CHUNKED }))
    while (!connection.isClosed() && !connection.text().endsWith('}')) {
      await connection.send(chunks('x'.repeat(100), 100))
      await Bun.sleep(1)
    }

    expect(connection.text()).toStartWith('HTTP/1.1 413 ')
    expect(connection.text()).toContain('"error":41301')
  })
})

/** A body in chunks (RFC 9112 §7.1), without the last one. */
const chunks = (body: string, bytesPerChunk: number) =>
  (body.match(new RegExp(`.{1,${bytesPerChunk}}`, 'g')) ?? [])
    .map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
    .join('')
