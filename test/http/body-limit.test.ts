import { describe, expect, test } from 'bun:test'
import { openConnection } from '../support/raw-connection.ts'
import { rawRequest } from './support/raw-request.ts'
import { type Service, startService } from './support/service.ts'
import { SOCKET_TRANSPORTS, TRANSPORTS } from './support/transports.ts'

const LIMIT_BYTES = 1000
const DEFAULT_LIMIT_BYTES = 64 * 1024
const REFUSAL = { error: 41301, message: expect.stringMatching(/larger/) }

const nameOf = (bytes: number, id = 1) => 'x'.repeat(bytes - `{"id":${id},"name":""}`.length)
/** A plant whose body has that many bytes. */
const plantOf = (bytes: number, id = 1) => `{"id":${id},"name":"${nameOf(bytes, id)}"}`

/** The status and the body of a create. */
async function create(service: Service, plant: string) {
  const { status, body } = await service.create(plant)
  return [status, body]
}

describe.each(TRANSPORTS)('a body, $name', (transport) => {
  test.each([
    ['--max-body', LIMIT_BYTES, { maxBodyBytes: LIMIT_BYTES }],
    ['64 KiB by default', DEFAULT_LIMIT_BYTES, {}],
  ])('is taken if it is as long as the limit, and refused if it is a byte longer: %s', async (_, bytes, options) => {
    await using service = await startService(transport, options)

    expect(await create(service, plantOf(bytes))).toEqual([200, { name: nameOf(bytes) }])
    expect(await create(service, plantOf(bytes + 1, 2))).toEqual([413, REFUSAL])
    expect(await service.names()).toEqual([nameOf(bytes)])
  })

  test('is measured in bytes and not in characters', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    const name = `xx${'🌿'.repeat(245)}`
    const body = `{"id":1,"name":"${name}"}`
    expect(Buffer.byteLength(body)).toBe(LIMIT_BYTES)

    expect(await create(service, `${body} `)).toEqual([413, REFUSAL])
    expect(await create(service, body)).toEqual([200, { name }])
  })

  test('is refused if white space, ignored properties or text that is not JSON make it too long', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })
    const plant = '{"id":1,"name":"Fern"}'

    for (const body of [
      plant.padEnd(LIMIT_BYTES + 1),
      plant.padStart(LIMIT_BYTES + 1),
      `{"x":"${'x'.repeat(LIMIT_BYTES)}",${plant.slice(1)}`,
      '['.repeat(LIMIT_BYTES + 1),
      '\0'.repeat(100 * LIMIT_BYTES),
    ]) {
      expect(await create(service, body)).toEqual([413, REFUSAL])
    }
    expect(await create(service, plant)).toEqual([200, { name: 'Fern' }])
  })
})

describe.each(SOCKET_TRANSPORTS)('a body, $name', (transport) => {
  const JSON_TYPE = 'Content-Type: application/json'
  const CHUNKED = [JSON_TYPE, 'Transfer-Encoding: chunked']

  async function send(service: Service, lines: readonly string[], body = '') {
    const answer = await service.exchange('POST', '/plants', { lines, body })
    return [answer.status, JSON.parse(answer.body)]
  }

  test('is refused by its Content-Length before any of it is sent', async () => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })

    for (const length of [LIMIT_BYTES + 1, 2 ** 40]) {
      expect(await send(service, [JSON_TYPE, `Content-Length: ${length}`])).toEqual([413, REFUSAL])
    }
  })

  test.each([LIMIT_BYTES + 1, 600, 1])('in chunks of %i bytes is refused as soon as it is too long', async (bytes) => {
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES })

    expect(await send(service, CHUNKED, `${chunks(plantOf(LIMIT_BYTES), bytes)}0\r\n\r\n`)).toEqual([
      200,
      { name: nameOf(LIMIT_BYTES) },
    ])
    const tooLong = chunks(plantOf(LIMIT_BYTES + 1, 2), bytes)
    for (const end of ['', '0\r\n\r\n']) expect(await send(service, CHUNKED, tooLong + end)).toEqual([413, REFUSAL])
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
