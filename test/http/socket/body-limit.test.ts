import { describe, expect, test } from 'bun:test'
import { makeCertificate, OPENSSL } from '../../support/certificates.ts'
import { makeFolder } from '../../support/folder.ts'
import { openConnection } from '../../support/raw-connection.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { rawRequest } from '../support/raw-request.ts'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const LIMIT_BYTES = 1000
const REFUSAL = { error: 41301, message: expect.stringMatching(/larger/) }
const CHUNKED = ['Content-Type: application/json', 'Transfer-Encoding: chunked']

const nameOf = (bytes: number, id = 1) => 'x'.repeat(bytes - `{"id":${id},"name":""}`.length)
/** A plant whose body has that many bytes. */
const plantOf = (bytes: number, id = 1) => `{"id":${id},"name":"${nameOf(bytes, id)}"}`

/** The lines that tell the length of a body, with `#` for its bytes. The runtime takes the first ones, and refuses the others. */
const TAKEN_LENGTHS = [
  ['Content-Length: #'],
  ['CONTENT-LENGTH:\t # '],
  ['Content-Length: 00#'],
  ['Content-Length: #', 'Content-Length: #'],
  ['Content-Length: #', 'content-length: #', 'Content-Length: #'],
]
const REFUSED_LENGTHS = [
  ['Content-Length: #, #'],
  ['Content-Length: +#'],
  ['Content-Length: # #'],
  ['Content-Length: 0#', 'Content-Length: #'],
  ['Content-Length: #', 'Content-Length: 5'],
  ['Content-Length: #', 'Transfer-Encoding: chunked'],
]

describe.each(SOCKET_TRANSPORTS)('a body, $name', (transport) => {
  async function send(service: Service, body: string, lengths: readonly string[] = ['Transfer-Encoding: chunked']) {
    const lines = ['Content-Type: application/json', ...lengths.map((line) => line.replace('#', String(body.length)))]
    const answer = await service.exchange('POST', '/plants', { lines, body })
    return [answer.status, answer.body && JSON.parse(answer.body)]
  }

  test.skipIf(lacks(OPENSSL)).each([
    ['HTTP', false],
    ['TLS', true],
  ])('of any declared length is taken up to the limit and refused beyond it, over %s', async (_, usesTls) => {
    using folder = makeFolder()
    const tls = usesTls ? await makeCertificate(folder.path, 'own') : undefined
    await using service = await startService(transport, { maxBodyBytes: LIMIT_BYTES, ...(tls && { tls }) })

    for (const [id, lengths] of TAKEN_LENGTHS.entries()) {
      const whole = await send(service, plantOf(LIMIT_BYTES, id), lengths)
      expect([lengths, whole]).toEqual([lengths, [200, { name: nameOf(LIMIT_BYTES, id) }]])
      for (const bytes of [LIMIT_BYTES + 1, 70_000])
        expect([lengths, await send(service, plantOf(bytes, 9), lengths)]).toEqual([lengths, [413, REFUSAL]])
    }
    for (const lengths of REFUSED_LENGTHS) {
      const answers = [await send(service, plantOf(500, 9), lengths), await send(service, plantOf(70_000, 9), lengths)]
      expect([lengths, answers]).toEqual([lengths, Array(2).fill([400, ''])])
    }
    // Without a length there is no body.
    expect(await send(service, '', [])).toEqual([400, expect.objectContaining({ error: 40001 })])
    expect(await service.names()).toEqual(TAKEN_LENGTHS.map((_, id) => nameOf(LIMIT_BYTES, id)))
  })

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
    await until('the server answers', async () => {
      await connection.send(chunks('x'.repeat(100), 100))
      return connection.isClosed() || connection.text().endsWith('}')
    })

    expect(connection.text()).toStartWith('HTTP/1.1 413 ')
    expect(connection.text()).toContain('"error":41301')
  })
})

/** A body in chunks (RFC 9112 §7.1), without the last one. */
const chunks = (body: string, bytesPerChunk: number) =>
  (body.match(new RegExp(`.{1,${bytesPerChunk}}`, 'g')) ?? [])
    .map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
    .join('')
