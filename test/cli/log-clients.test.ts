import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { HOPS_MAX } from '../../src/http/client-address.ts'
import { USER_AGENT_MAX_LENGTH } from '../../src/http/observe.ts'
import { makeFolder } from '../support/folder.ts'
import { exchange } from '../support/raw-connection.ts'
import { sendHalf } from '../support/slow.ts'
import { until } from '../support/until.ts'
import { serveDatabase } from './support/database.ts'

type Logged = Readonly<Record<string, unknown>>

/** Requests of the tests come from here. */
const PEER = '127.0.0.1'
const CLIENT = '203.0.113.7'
/** The address that a client lies about. */
const LIE = '198.51.100.1'
const TRUSTED = ['--trusted-proxy', '127.0.0.0/8,10.0.0.0/8', '--trusted-proxy', 'fd00::/8']

/** Sends a request for each of these lists of header lines, and ends the server. Returns the lines of the log in this order. */
async function logHeads(flags: readonly string[], heads: readonly (readonly string[])[], host = PEER) {
  await using service = await serveDatabase(['--listen', `${host}:0`, ...flags])
  for (const [id, lines] of heads.entries()) {
    const head = ['GET /healthz HTTP/1.1', 'Host: a', 'Connection: close', `X-Request-Id: ${id}`, ...lines]
    await exchange(service.server.port, Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'))
  }
  await service.server.end()
  const records: Logged[] = service.server
    .stdout()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ requestId }) => requestId !== undefined)
    // Lines of different threads may be out of order.
    .sort((a, b) => a.requestId - b.requestId)
  expect(records.map(({ requestId }) => requestId)).toEqual(heads.map((_, id) => String(id)))
  return records
}

/** The addresses that the log has of requests with these header lines. */
const addressesOf = async (flags: readonly string[], heads: readonly (readonly string[])[], host?: string) =>
  (await logHeads(flags, heads, host)).map(({ remoteAddress }) => remoteAddress)

const xForwardedFor = (...values: readonly string[]) => values.map((value) => `X-Forwarded-For: ${value}`)

/** Header lines of a request, and the address that a server logs if it trusts the proxies of the test. */
const CASES: readonly (readonly [lines: readonly string[], address: string])[] = [
  [[], PEER],
  [xForwardedFor(`${LIE},${CLIENT} ,\t10.1.2.3, fd00::1`), CLIENT],
  [xForwardedFor(LIE, CLIENT, '10.0.0.1'), CLIENT],
  [xForwardedFor(`${CLIENT}:4711`), CLIENT],
  [xForwardedFor('[2001:db8::17]:4711'), '2001:db8::17'],
  [xForwardedFor('2001:db8::17'), '2001:db8::17'],
  [xForwardedFor(`::ffff:${CLIENT}`), CLIENT],
  [xForwardedFor('10.0.0.2, ::ffff:10.0.0.1'), '10.0.0.2'],
]

const MALFORMED = [
  '',
  'unknown',
  'plants.example.org',
  '999.1.1.1',
  '[::1',
  `${CLIENT}:1:2`,
  `"${CLIENT}"`,
  `${CLIENT},`,
]

/** The same for headers that name no address, or that may be the client's own. */
const BAD_CASES: typeof CASES = [
  ...MALFORMED.map((value) => [xForwardedFor(value), PEER] as const),
  [xForwardedFor(`${LIE}, _hidden, 10.0.0.1`), '10.0.0.1'],
  // 10 KB of lies.
  [xForwardedFor(`${`${LIE}, `.repeat(770)}${CLIENT}`), CLIENT],
  // A chain of proxies at the limit, and one longer.
  [xForwardedFor(`${CLIENT}${', 10.0.0.1'.repeat(HOPS_MAX - 1)}`), CLIENT],
  [xForwardedFor(`${CLIENT}${', 10.0.0.1'.repeat(HOPS_MAX)}`), '10.0.0.1'],
  // The proxy may write `Forwarded`, and let the other header of a client pass.
  [[`Forwarded: for=${CLIENT}`, ...xForwardedFor(CLIENT)], PEER],
  [[...xForwardedFor(LIE), 'Forwarded:'], PEER],
]
const headsOf = (cases: typeof CASES) => cases.map(([lines]) => lines)

describe.concurrent('the address of a client in the log', () => {
  test.each([
    ['is the right-most address in the header of a trusted proxy that is not of a trusted proxy', CASES],
    [
      'is that of the nearest proxy if a header is malformed or hides the client, or if there is a Forwarded',
      BAD_CASES,
    ],
  ])('%s', async (_, cases) => {
    const seen = await addressesOf(TRUSTED, headsOf(cases))

    expect(cases.map(([lines], index) => [lines, seen[index]])).toEqual(cases.map(([...row]) => row))
  })

  test.each([
    ['without --trusted-proxy', []],
    ['if the connection is of no trusted proxy', ['--trusted-proxy', '10.0.0.0/8,unix']],
  ])('is that of the connection %s, whatever the headers say', async (_, flags) => {
    const seen = await addressesOf(flags, headsOf([...CASES, ...BAD_CASES]))

    expect([...new Set(seen)]).toEqual([PEER])
  })

  test('is in the form of IPv4 if an IPv4 client uses a socket for both families', async () => {
    expect(await addressesOf([], [[], xForwardedFor(CLIENT)], '[::]')).toEqual([PEER, PEER])
    expect(await addressesOf(TRUSTED, [xForwardedFor(CLIENT)], '[::]')).toEqual([CLIENT])
  })

  test('is missing on a unix socket, unless --trusted-proxy unix takes it from a header', async () => {
    const askThere = async (flags: readonly string[]) => {
      using folder = makeFolder()
      const path = join(folder.path, 'socket')
      await using service = await serveDatabase(['--listen', `unix:${path}`, ...flags])
      const headers = { 'x-forwarded-for': `${LIE}, ${CLIENT}, 10.0.0.1` }
      await fetch('http://localhost/healthz', { unix: path, headers })
      await fetch('http://localhost/healthz', { unix: path, headers: { 'x-forwarded-for': 'unknown' } })
      await service.server.end()
      const lines = service.server.stdout().trimEnd().split('\n').slice(1, -2)
      return lines.map((line) => JSON.parse(line).remoteAddress)
    }

    expect(await askThere([])).toEqual([undefined, undefined])
    expect(await askThere(['--trusted-proxy', '10.0.0.0/8'])).toEqual([undefined, undefined])
    expect(await askThere(['--trusted-proxy', 'unix,10.0.0.0/8'])).toEqual([CLIENT, undefined])
  })

  test('is there also if the client goes away before its body is whole', async () => {
    await using service = await serveDatabase()
    const { server, token } = service
    const create = `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json`
    using half = await sendHalf(server.port, `${create}\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n{`)
    await half.until(() => half.text() !== '')
    // The kernel forgets the address at once if the client resets the connection.
    half.endOwnSide()
    await until('the request is logged', () => server.stdout().includes('"createPlant"'))
    await server.end()

    expect(server.stdout()).toMatch(/"operation":"createPlant".*"status":400.*"remoteAddress":"127\.0\.0\.1"/)
  })

  test('and its agent are missing with --log-addresses off, but not its trace', async () => {
    const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }
    const lines = [
      'User-Agent: curl/8',
      `traceparent: 00-${trace.traceId}-${trace.spanId}-01`,
      ...xForwardedFor(CLIENT),
    ]
    for (const flags of [[], TRUSTED]) {
      const [logged = {}] = await logHeads(['--log-addresses', 'off', ...flags], [lines])

      expect(logged).toMatchObject(trace)
      expect(Object.keys(logged)).not.toContain('remoteAddress')
      expect(JSON.stringify(logged)).not.toMatch(/curl|127\.0\.0\.1|203\.0/)
    }
  })
})

describe.concurrent('the agent of a client in the log', () => {
  test('has 200 characters at most, and no token', async () => {
    const secret = 'k'.repeat(49)
    const long = 'x-'.repeat(5000)
    const agents = {
      'a\tb\u0085c\u009b2K "quoted" \\': 'a\tb\u0085c\u009b2K "quoted" \\',
      [long.slice(0, USER_AGENT_MAX_LENGTH)]: long.slice(0, USER_AGENT_MAX_LENGTH),
      [long.slice(0, USER_AGENT_MAX_LENGTH + 1)]: long.slice(0, USER_AGENT_MAX_LENGTH),
      [`plants/1 plst_${secret} x`]: 'plants/1 plst_*** x',
      [`plants/1 ${secret}`]: 'plants/1 plst_***',
      [`${long.slice(0, 194)}plst_${secret}`]: `${long.slice(0, 194)}plst_*`,
    }
    const logged = await logHeads(
      [],
      Object.keys(agents).map((agent) => [`User-Agent: ${agent}`]),
    )

    expect(USER_AGENT_MAX_LENGTH).toBe(200)
    expect(logged.map(({ userAgent }) => userAgent)).toEqual(Object.values(agents))
  })

  test('is missing if the client sends none or an empty one', async () => {
    const logged = await logHeads([], [[], ['User-Agent: ']])

    expect(logged.filter((line) => 'userAgent' in line)).toEqual([])
  })
})

describe.concurrent('the trace of a client in the log', () => {
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const spanId = '00f067aa0ba902b7'
  const ids = `${traceId}-${spanId}`
  const traceparent = (...values: readonly string[]) => values.map((value) => `traceparent: ${value}`)

  test('has the ids of a valid traceparent, also of a later version', async () => {
    const valid = [`00-${ids}-01`, `00-${ids}-ff`, `01-${ids}-01`, `cc-${ids}-01-what-the-future-will-be`]
    const logged = await logHeads(
      [],
      valid.map((value) => [...traceparent(value), 'tracestate: a=b']),
    )

    expect(logged.map(({ traceId, spanId }) => ({ traceId, spanId }))).toEqual(valid.map(() => ({ traceId, spanId })))
  })

  test('is missing if the traceparent is invalid, of zeros, given twice or of version ff', async () => {
    const zeros = (count: number) => '0'.repeat(count)
    const logged = await logHeads(
      [],
      [
        ...['', ids, `00-${ids}`, `00-${ids}-1`, `00-${ids}-01-x`, `01-${ids}-01x`, `00-${ids}-0g`, `0-${ids}-01`],
        ...[`00-${zeros(32)}-${spanId}-01`, `00-${traceId}-${zeros(16)}-01`, `ff-${ids}-01`],
        ...[`00-${ids.toUpperCase()}-01`, `00-${traceId.slice(1)}-${spanId}-01`, `00-${traceId}-${spanId}0-01`],
      ]
        .map((value) => traceparent(value))
        .concat([traceparent(`01-${ids}-01`, `01-${ids}-01`)]),
    )

    expect(logged.filter((line) => 'traceId' in line || 'spanId' in line)).toEqual([])
  })
})
