import { describe, expect, test } from 'bun:test'
import type { RawOptions } from '../support/raw-request.ts'
import { type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

/** The status of an answer, its error code or the body of a success, and `Allow`. */
const ask = async (service: Service, method: string, target: string, options?: RawOptions) => {
  const { status, body, headers } = await service.exchange(method, target, options)
  const code = /^\{"error":(\d+),/.exec(body)?.[1]
  return { status, body: code === undefined ? body : Number(code), allow: headers.get('allow') }
}

const success = (body: string) => ({ status: 200, body, allow: null })
const PATH_UNKNOWN = { status: 404, body: 40401, allow: null }

/** Values of `Host`, odd ones included. */
const HOSTS = [
  ...['x', '', 'a.b', 'x:1', 'a,b', 'a,', '[::1]', '[::1]:80', 'x/plants', '/plants', 'x?y', 'x#y', 'u@x'],
  ...['a b', '%', ':', ':80', 'x:99999', '..', '\u00e9', 'x'.repeat(300)],
]

describe.each(SOCKET_TRANSPORTS)('the Host line, $name', (transport) => {
  test('shifts no path, however short or odd it is', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    const answers = await Promise.all(
      HOSTS.map(async (host) => [
        host,
        await ask(service, 'GET', '/plants?limit=1', { host }),
        await ask(service, 'GET', '/abc/plants', { host }),
        await ask(service, 'DELETE', '/a/plants/1', { host }),
        await ask(service, 'GET', '/nothing', { host }),
        await ask(service, 'PUT', '/plants/1', { host }),
      ]),
    )

    for (const [host, ...rest] of answers) {
      expect([host, ...rest]).toEqual([
        host,
        success('[{"name":"Fern"}]'),
        PATH_UNKNOWN,
        PATH_UNKNOWN,
        PATH_UNKNOWN,
        { status: 405, body: 40501, allow: 'GET, HEAD, DELETE, OPTIONS' },
      ])
    }
  })

  test('is refused if it comes twice, before anything else is checked', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const twice = ['Host: x', 'Host: x']
    const requests: (readonly [string, string, RawOptions])[] = [
      ...[
        ['Host: x', 'Host: y'],
        ['host: x', 'HOST: x'],
        ['Host:', 'Host: x'],
        ['Host: x', 'Host:'],
        ['Host:', 'Host:'],
        ['Host: x', 'Accept: */*', 'Host: x'],
        ['Host: x', 'Host: x', 'Host: x'],
      ].map((lines) => ['GET', '/plants', { lines }] as const),
      ['DELETE', '/plants/1', { lines: twice }],
      ['GET', '/plants', { lines: twice, version: '1.0' }],
      ['GET', '/nothing', { lines: twice, token: null }],
      ['OPTIONS', '/plants', { lines: twice, token: null }],
      ['PUT', '/plants', { lines: twice, token: null }],
      ['GET', '/plants?limit=x', { lines: twice, token: null }],
      ['POST', '/plants', { lines: twice, token: null }],
    ]

    const answers = await Promise.all(
      requests.map(([method, target, options]) => ask(service, method, target, { ...options, host: null })),
    )

    expect<unknown>(answers).toEqual(answers.map(() => ({ status: 400, body: 40005, allow: null })))
    expect(await service.names()).toEqual(['Fern'])
  })

  test('may be left out with HTTP/1.0', async () => {
    await using service = await startService(transport)
    const http10 = (method: string, target: string, options: RawOptions = {}) =>
      ask(service, method, target, { host: null, version: '1.0', closes: false, ...options })

    expect(await http10('GET', '/plants')).toEqual(success('[]'))
    expect(await http10('GET', '/plants?limit=x')).toEqual({ status: 400, body: 40003, allow: null })
    expect(await http10('GET', '/x/%2E%2e/plants?limit=0')).toEqual(success('[]'))
    expect(await http10('GET', '//plants')).toEqual(PATH_UNKNOWN)
    expect(await http10('OPTIONS', '/plants/1')).toEqual({ status: 204, body: '', allow: 'GET, HEAD, DELETE, OPTIONS' })
    expect(await http10('DELETE', '/plants/1')).toEqual({ status: 404, body: 40402, allow: null })
  })
})
