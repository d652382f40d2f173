import { describe, expect, test } from 'bun:test'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const BODY = '{"id":1,"name":"Fern"}'
const JSON_TYPE = 'Content-Type: application/json'
const IS_ENCODED = 'The server decodes no body: send it without a Content-Encoding.'

const TYPES = [
  ...['application/json', 'APPLICATION/Json', 'application/json;', 'application/json;charset=utf-8'],
  ...['application/json; CharSet="Utf-8"', 'application/json ; charset=utf-8', 'application/json; charset="utf-8"'],
  ...[
    'application/json; profile="a,b; charset=latin1"; charset=utf-8',
    'application/json; charset=utf-8; profile="\\""',
  ],
]

const OTHER_TYPES = [
  ...['', 'text/plain', 'application/jsonx', 'application/vnd.api+json', 'application/x-www-form-urlencoded'],
  ...['multipart/form-data; boundary=x', 'application/*', 'json', 'application/ json'],
  ...['text/plain; x=application/json', 'application/json charset=utf-8', 'application/json, application/json'],
  ...['application/json; charset=latin1', 'application/json; CHARSET=us-ascii', 'application/json; charset=utf-8x'],
  ...['application/json; charset=""', 'application/json; charset="utf\\-16"'],
  ...['application/json; profile=x; charset=latin1', 'application/json; charset=utf-8; charset=latin1'],
  ...['application/json; charset=latin1; charset=utf-8'],
]

/** Two `Content-Type` lines each. */
const TYPES_GIVEN_TWICE = [
  ['application/json', 'application/json'],
  ['application/json', 'text/plain'],
  ['text/plain', 'application/json'],
  ['application/json', ''],
  ['', 'application/json'],
  ['application/json; a="x', 'y"'],
  ['application/json; a="x\\', 'y"'],
]

const IDENTITIES = [[], [''], ['identity'], ['IDENTITY ']]

/** The values of one line or two. */
const OTHER_ENCODINGS = [
  ...[['gzip'], ['BR'], ['gzip, identity'], ['identity, identity'], ['identity;q=1'], ['identity gzip'], ['identityx']],
  ...[['"identity"'], ['*'], ['a,'.repeat(7000)], ['identity', 'identity'], ['identity', 'gzip'], ['gzip', 'identity']],
]

/** Creates a plant with these lines in the head. */
async function post(service: Service, lines: readonly string[]) {
  const { status, headers, body } = await service.exchange('POST', '/plants', {
    lines: [...lines, `Content-Length: ${BODY.length}`],
    body: BODY,
  })
  return { status, headers, body: JSON.parse(body) }
}

const typed = (types: readonly string[]) => types.map((type) => `Content-Type: ${type}`)
const encoded = (codings: readonly string[]) => [JSON_TYPE, ...codings.map((coding) => `Content-Encoding: ${coding}`)]

describe.each(SOCKET_TRANSPORTS)('a create, $name', (transport) => {
  test.each([
    ['Content-Type application/json, with any parameters and in any letter case', TYPES.map((type) => typed([type]))],
    ['Content-Encoding identity or none', IDENTITIES.map(encoded)],
  ])('is taken with %s', async (_, heads) => {
    await using service = await startService(transport)

    for (const head of heads) {
      const { status, body } = await post(service, head)
      expect({ head, status, body }).toEqual({ head, status: 200, body: { name: 'Fern' } })
      await service.delete(1)
    }
  })

  test('is refused with 41501 if Content-Type is missing, given twice, another type or another charset', async () => {
    await using service = await startService(transport)

    for (const types of [[], ...OTHER_TYPES.map((type) => [type]), ...TYPES_GIVEN_TWICE]) {
      const { status, body } = await post(service, typed(types))
      expect({ types, status, body }).toEqual({
        types,
        status: 415,
        body: { error: 41501, message: expect.stringMatching(/\w/) },
      })
    }
    expect(await service.names()).toEqual([])
  })

  test('is refused with 41502 and Accept-Encoding if Content-Encoding is not identity', async () => {
    await using service = await startService(transport)

    for (const codings of OTHER_ENCODINGS) {
      const { status, headers, body } = await post(service, encoded(codings))
      const accepted = headers.get('accept-encoding')
      expect({ codings, status, accepted, body }).toEqual({
        codings,
        status: 415,
        accepted: 'identity',
        body: { error: 41502, message: IS_ENCODED },
      })
    }
    expect(await service.names()).toEqual([])
  })
})
