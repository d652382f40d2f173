import { describe, expect, test } from 'bun:test'
import { exchange } from '../support/raw-connection.ts'
import { type Service, SOCKET_TRANSPORTS, startService } from './support/service.ts'

const BODY = '{"id":1,"name":"Fern"}'
const GZIPPED = Bun.gzipSync(BODY)

const TAKEN = [
  ['identity'],
  ['Identity'],
  ['IDENTITY '],
  ['identity, identity'],
  ['identity', 'identity'],
  [''],
  [','],
  [],
]
const REFUSED = [
  ['gzip'],
  ['GZIP'],
  ['x-gzip'],
  ['deflate'],
  ['br'],
  ['zstd'],
  ['gzip, identity'],
  ['identity,gzip'],
  ['gzip', 'identity'],
  ['identity', 'gzip'],
  ['identity;q=1'],
  ['identity gzip'],
  ['identityx'],
  ['"identity"'],
  ['*'],
  ['a,'.repeat(7000)],
]

/** Creates a plant with these `Content-Encoding` lines. */
function post({ port, token }: Service, codings: readonly string[], body: Uint8Array | string = BODY) {
  const bytes = Buffer.from(body)
  const lines = [
    'POST /plants HTTP/1.1',
    'Host: localhost',
    'Connection: close',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    ...codings.map((coding) => `Content-Encoding: ${coding}`),
    `Content-Length: ${bytes.length}`,
  ]
  return exchange(port, Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), bytes]))
}

describe.each(SOCKET_TRANSPORTS)('the content encoding of a new plant, $name', (transport) => {
  test('is taken if it is identity, however often and in any letter case, or empty', async () => {
    await using service = await startService(transport)

    for (const codings of TAKEN) {
      const { status, body } = await post(service, codings)
      expect([codings, status, body]).toEqual([codings, 200, '{"name":"Fern"}'])
      await service.delete(1)
    }
  })

  test('is refused if it is any other, and the answer says which is taken', async () => {
    await using service = await startService(transport)

    for (const codings of REFUSED) {
      const { status, headers, body } = await post(service, codings)
      expect([codings, status, JSON.parse(body)]).toEqual([
        codings,
        415,
        { error: 41502, message: 'The server decodes no body: send it without a Content-Encoding.' },
      ])
      expect(headers.get('accept-encoding')).toBe('identity')
    }
    expect(await service.names()).toEqual([])
  })

  test('does not matter if the body is encoded all the same: bytes of gzip are no JSON', async () => {
    await using service = await startService(transport)

    const unsaid = await post(service, [], GZIPPED)
    const said = await post(service, ['gzip'], GZIPPED)

    expect([unsaid, said].map(({ body }) => JSON.parse(body).error)).toEqual([40001, 41502])
  })
})
