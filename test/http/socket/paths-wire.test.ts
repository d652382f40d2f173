import { describe, expect, test } from 'bun:test'
import { exchange } from '../../support/raw-connection.ts'
import { type Service, SOCKET_TRANSPORTS, startService } from '../support/service.ts'

/** Requests as bytes, each on a connection of its own. Resolves to status and error code, or the body of a success. */
const ask = async (service: Service, target: string, lines: readonly string[], method = 'GET', version = '1.1') => {
  const head = [`${method} ${target} HTTP/${version}`, ...lines, `Authorization: Bearer ${service.token}`]
  if (version === '1.1') head.push('Connection: close')
  const { status, body, headers } = await exchange(service.port, `${head.join('\r\n')}\r\n\r\n`)
  const code = /^\{"error":(\d+),/.exec(body)?.[1]
  return { status, body: code === undefined ? body : Number(code), allow: headers.get('allow') }
}

const success = (body: string) => ({ status: 200, body, allow: null })
const DELETED = { status: 204, body: '', allow: null }
const PATH_UNKNOWN = { status: 404, body: 40401, allow: null }
const SEVERAL_HOSTS = { status: 400, body: 40005, allow: null }

/** What somebody may send as `Host`, none of it longer or shorter than the router can bear. */
const HOSTS = [
  'x',
  'a',
  '',
  '1',
  'a.b',
  'localhost',
  'x:1',
  'a,b',
  'a,',
  '[::1]',
  '[::1]:80',
  'x/plants',
  '/plants',
  'x?y',
  'x#y',
  'u@x',
]
const ODD_HOSTS = ['a b', '%', ':', ':80', 'x:99999', '..', '\u00e9', 'x'.repeat(300)]

describe.each(SOCKET_TRANSPORTS)('Host, $name', (transport) => {
  test('shifts no path, however short or odd it is', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    const answers = await Promise.all(
      [...HOSTS, ...ODD_HOSTS].map(async (host) => {
        const lines = [`Host: ${host}`]
        return [
          host,
          await ask(service, '/plants?limit=1', lines),
          await ask(service, '/abc/plants', lines),
          await ask(service, '/a/plants/1', lines, 'DELETE'),
          await ask(service, '/nothing', lines),
          await ask(service, '/plants/1', lines),
        ]
      }),
    )

    for (const [host, ...rest] of answers) {
      expect([host, ...rest]).toEqual([
        host,
        success('[{"name":"Fern"}]'),
        PATH_UNKNOWN,
        PATH_UNKNOWN,
        PATH_UNKNOWN,
        { status: 405, body: 40501, allow: 'DELETE, OPTIONS' },
      ])
    }
  })

  test('shifts no path of the documentation', async () => {
    await using service = await startService(transport)
    const types = { '/openapi.json': 'application/json', '/docs': 'text/html', '/docs/scalar.js': 'text/javascript' }

    for (const host of HOSTS) {
      for (const [path, type] of Object.entries(types)) {
        for (const method of ['GET', 'HEAD']) {
          const sent = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
          const { status, headers } = await exchange(service.port, sent)
          const [given] = (headers.get('content-type') ?? '').split(';')
          expect([host, method, path, status, given]).toEqual([host, method, path, 200, type])
        }
      }
    }
  })

  test('is refused where it is given twice, whatever the request is', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const pairs = [
      ['Host: x', 'Host: y'],
      ['Host: x', 'Host: x'],
      ['host: x', 'HOST: x'],
      ['Host:', 'Host: x'],
      ['Host: x', 'Host:'],
      ['Host:', 'Host:'],
      ['Host: x', 'Accept: */*', 'Host: x'],
      ['Host: x', 'Host: x', 'Host: x'],
    ]

    const answers = await Promise.all([
      ...pairs.map((lines) => ask(service, '/plants', lines)),
      ask(service, '/plants/1', ['Host: x', 'Host: x'], 'DELETE'),
      ask(service, '/plants', ['Host: x', 'Host: x'], 'GET', '1.0'),
    ])

    expect<unknown>(answers).toEqual(answers.map(() => SEVERAL_HOSTS))
    expect(await service.names()).toEqual(['Fern'])
  })

  test('may be left out with HTTP/1.0', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const http10 = (method: string, target: string) => ask(service, target, [], method, '1.0')

    expect(await http10('GET', '/plants')).toEqual(success('[{"name":"Fern"}]'))
    expect(await http10('GET', '/plants?limit=0')).toEqual(success('[]'))
    expect(await http10('GET', '/plants?limit=x')).toEqual({ status: 400, body: 40003, allow: null })
    expect(await http10('GET', '/x/%2E%2e/plants?limit=0')).toEqual(success('[]'))
    expect(await http10('GET', '/plants/..')).toEqual(PATH_UNKNOWN)
    expect(await http10('GET', '/nothing')).toEqual(PATH_UNKNOWN)
    expect(await http10('GET', '//plants')).toEqual(PATH_UNKNOWN)
    expect(await http10('OPTIONS', '/plants/1')).toEqual({ status: 204, body: '', allow: 'DELETE, OPTIONS' })
    expect(await http10('DELETE', '/plants/1')).toEqual(DELETED)
    expect(await http10('DELETE', '/plants/1')).toEqual({ status: 404, body: 40402, allow: null })
  })

  test('may be left out with HTTP/1.0 when a plant is created, whose body is read as usual', async () => {
    await using service = await startService(transport)
    const plant = '{"id":1,"name":"Fern"}'
    const head = `POST /plants HTTP/1.0\r\nAuthorization: Bearer ${service.token}\r\nContent-Type: application/json\r\n`

    const { status, body } = await exchange(service.port, `${head}Content-Length: ${plant.length}\r\n\r\n${plant}`)

    expect({ status, body }).toEqual({ status: 200, body: '{"name":"Fern"}' })
    expect(await service.names()).toEqual(['Fern'])
  })
})

describe.each(SOCKET_TRANSPORTS)('HEAD, $name', (transport) => {
  test('is answered without a byte of a body', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const targets = [
      '/plants',
      '/plants?limit=1',
      '/plants/1',
      '/nothing',
      '/healthz',
      '/openapi.json',
      '/docs/scalar.js',
    ]

    const answers = await Promise.all(targets.map((target) => ask(service, target, ['Host: x'], 'HEAD')))

    expect(answers.map(({ status, body }) => [status, body])).toEqual([
      [200, ''],
      [200, ''],
      [405, ''],
      [404, ''],
      [200, ''],
      [200, ''],
      [200, ''],
    ])
  })

  test('of a list that is streamed is answered with the head of GET but its length', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const own = ['x-request-id', 'date', 'content-length', 'transfer-encoding']
    const headOf = async (method: string) => {
      const { status, headers } = await exchange(
        service.port,
        `${method} /plants HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${service.token}\r\n\r\n`,
      )
      return { status, lines: Object.fromEntries([...headers].filter(([name]) => !own.includes(name))) }
    }

    expect(await headOf('HEAD')).toEqual(await headOf('GET'))
  })
})
