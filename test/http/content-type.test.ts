import { describe, expect, test } from 'bun:test'
import { exchange } from '../support/raw-connection.ts'
import { SOCKET_TRANSPORTS, startService, TRANSPORTS } from './support/service.ts'

const BODY = '{"id":1,"name":"Fern"}'

const TAKEN = [
  'application/json',
  'APPLICATION/Json',
  'application/json;charset=utf-8',
  'application/json; charset=UTF-8',
  'application/json; CharSet="Utf-8"',
  'application/json ; charset=utf-8',
  'application/json;',
  'application/json; profile=plants',
  'application/json; profile="a,b; charset=latin1"; charset=utf-8',
  'application/json; charset=utf-8; profile="\\""',
  'application/json; charset="utf\\-8"',
]

const REFUSED = [
  'text/plain',
  'text/json',
  'application/jsonx',
  'application/json5',
  'application/vnd.api+json',
  'application/json-patch+json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/octet-stream',
  'application/*',
  '*/*',
  'json',
  'application',
  'application/ json',
  'application/json charset=utf-8',
  'application/json, text/plain',
  'application/json, application/json',
  'text/plain; x=application/json',
  'application/json; charset=latin1',
  'application/json; charset=utf-16',
  'application/json; charset=us-ascii',
  'application/json; CHARSET=latin1',
  'application/json; charset=utf-8x',
  'application/json; charset=""',
  'application/json; charset="utf-16"',
  'application/json; charset="utf\\-16"',
  'application/json; profile=x; charset=latin1',
  'application/json; charset=utf-8; charset=latin1',
  'application/json; charset=latin1; charset=utf-8',
]

const REFUSAL = { error: 41501, message: expect.stringMatching(/\w/) }

describe.each(TRANSPORTS)('the content type of a new plant, $name', (transport) => {
  test('is taken with any parameters, in any letter case', async () => {
    await using service = await startService(transport)

    for (const type of TAKEN) {
      const { status, body } = await service.create(BODY, { headers: { 'content-type': type } })
      expect([type, status, body]).toEqual([type, 200, { name: 'Fern' }])
      await service.delete(1)
    }
  })

  test('is refused where it is another one, or names another charset', async () => {
    await using service = await startService(transport)

    for (const type of REFUSED) {
      const { status, body } = await service.create(BODY, { headers: { 'content-type': type } })
      expect([type, status, body]).toEqual([type, 415, REFUSAL])
    }
    expect(await service.names()).toEqual([])
  })

  test('is refused where it is missing', async () => {
    await using service = await startService(transport)

    const { status, body } = await service.request('POST', '/plants', { body: new TextEncoder().encode(BODY) })

    expect([status, body]).toEqual([415, REFUSAL])
    expect(await service.names()).toEqual([])
  })
})

describe.each(SOCKET_TRANSPORTS)('the content type of a new plant, $name', (transport) => {
  test('is refused where it is missing, empty or given twice', async () => {
    await using service = await startService(transport)
    const types = [[], [''], ['application/json', 'application/json'], ['application/json', 'text/plain']]
    const inBothOrders = [
      ...types,
      ['application/json; a="x', 'y"'],
      ['application/json; a="x\\', 'y"'],
      ['text/plain', 'application/json'],
      ['', 'application/json'],
      ['application/json', ''],
    ]

    for (const lines of inBothOrders) {
      const { status, body } = await post(service, lines)
      expect([lines, status, JSON.parse(body)]).toEqual([lines, 415, REFUSAL])
    }
    expect(await service.names()).toEqual([])
  })

  test('is taken where it is given once', async () => {
    await using service = await startService(transport)

    const { status, body } = await post(service, ['application/json'])

    expect([status, body]).toEqual([200, '{"name":"Fern"}'])
  })
})

/** Creates a plant with these `Content-Type` lines. */
const post = ({ port, token }: { readonly port: number; readonly token: string }, types: readonly string[]) =>
  exchange(
    port,
    [
      'POST /plants HTTP/1.1',
      'Host: localhost',
      'Connection: close',
      `Authorization: Bearer ${token}`,
      ...types.map((type) => `Content-Type: ${type}`),
      `Content-Length: ${BODY.length}`,
      '',
      BODY,
    ].join('\r\n'),
  )
