import { describe, expect, test } from 'bun:test'
import { connect } from 'node:http2'
import { join } from 'node:path'
import { OPENSSL } from '../support/certificates.ts'
import { openConnection } from '../support/raw-connection.ts'
import { lacks, program } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { CLIENT, HOST, PROXIES, startBehind } from './behind-proxy.ts'

/** A proxy, and the certificate that it shows. */
interface Proxy {
  readonly port: number
  readonly ca: string
}

const PATH = '/garden/plants'
const HEAD = `POST ${PATH} HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`
const END = '0\r\nX-Sum: 5\r\n\r\n'
/** In how many places `sendByHttp1` can cut the end of a body. */
const CUTS = END.length

/** Sends a body with a trailer by HTTP/1.1, and no token. The end of the body is cut there. Resolves to the status of the answer. */
async function sendByHttp1({ port, ca }: Proxy, cut: number): Promise<number | undefined> {
  using connection = await openConnection(port, { ca, serverName: HOST })
  await connection.send(HEAD + END.slice(0, cut))
  await Bun.sleep(1)
  return (await connection.request(END.slice(cut))).status
}

/** The same by HTTP/2. Resolves to `undefined` if the proxy refuses trailers, as nginx 1.22 does. */
async function sendByHttp2({ port, ca }: Proxy): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  const refuse = () => resolve(undefined)
  const session = connect(`https://127.0.0.1:${port}`, { ca, servername: HOST }).on('error', refuse)
  const target = { ':method': 'POST', ':path': PATH, ':authority': HOST }
  const request = session.request(target, { waitForTrailers: true }).on('error', refuse).on('close', refuse)
  request.on('wantTrailers', () => request.sendTrailers({ 'x-sum': '5' }))
  request.on('response', ({ ':status': status }) => resolve(status))
  request.end('hello')
  return promise.finally(() => session.destroy())
}

const FORGED = '203.0.113.9'
/** Longer than the buffers of proxies and the windows of HTTP/2. nginx itself refuses more than 2 MiB, as its example says. */
const REFUSED_BYTES = [100_000, 300_000, 1_500_000]
const STATUS = '%{http_version} %{http_code}\n'
const HTTP2 = ['--http2', '--max-time', '30', '--output', '/dev/null', '--write-out']
const JSON_BODY = ['--header', 'Content-Type: application/json']
const CLIENTS = 4
/** Requests of a client, one behind another. A proxy sends the later ones on connections that it shares. */
const REQUESTS = 5
const CREATED = '2 201'
/** Requests that a client sends while others send trailers. */
const MANY_REQUESTS = 300
/** Requests that a client of the restarts sends without a pause, and how many at once, on one connection. */
const BURST = 40
const AT_ONCE = 4
/** Pauses between requests while all servers stall. They are longer than those between checks of HAProxy, but a check may take longer. */
const STALL_MS = [0, 200, 200]
/** A check that began before takes no more than the rest of its two seconds. */
const STALL_MAX_MS = 1000

describe.concurrent.each(PROXIES)('the example of $name in $file', (proxy) => {
  test.skipIf(lacks(OPENSSL, program(proxy.name)))(
    'serves under /garden/ alone, leads /garden there, and replaces what a client says of itself',
    async () => {
      await using behind = await startBehind({ ...proxy, servers: 1 })
      const { token, origin, curl, log } = behind
      const headers = [`Authorization: Bearer ${token}`, `X-Forwarded-For: ${FORGED}`, `Forwarded: for=${FORGED}`]
      const forged = [...headers, 'X-Request-Id: forged'].flatMap((line) => ['--header', line])
      const create = [...JSON_BODY, '--data', '{"id":1,"name":"Fern"}']

      expect(await curl('/garden', '--output', '/dev/null', '--write-out', '%{http_code} %{redirect_url}')).toBe(
        `301 ${origin}/garden/`,
      )
      expect(await curl('/garden/', '--header', 'Accept: text/html')).toStartWith('<!doctype html>')
      expect(await curl('/garden/plants', ...forged, ...create)).toBe('{"name":"Fern"}')
      expect(await curl('/garden/plants', ...forged)).toBe('[{"name":"Fern"}]')
      const outside = ['--http1.1', '--output', '/dev/null', '--write-out', '%{http_code}\n']
      for (const asked of [[], create, ['--head']])
        expect(await curl('/{,plants,gardens/plants}', ...forged, ...asked, ...outside)).toBe('404\n'.repeat(3))
      await until('the list is logged', (see) => see(log()).includes('"listPlants"'))
      const lines = log().split('\n')
      expect(lines.find((each) => each.includes('"createPlant"'))).toContain(`"remoteAddress":"${CLIENT}"`)
      expect(log()).not.toMatch(/forged|203\.0\.113\.9/)
    },
  )

  test.skipIf(lacks(OPENSSL, program(proxy.name)))(
    'answers all clients of HTTP/2 while and after the server refuses large bodies of others',
    async () => {
      await using behind = await startBehind(proxy)
      const { folder, token, curl } = behind
      const refuse = async (bytes: number) => {
        const path = join(folder, 'body')
        await Bun.write(path, 'x'.repeat(bytes))
        return () => curl('/garden/plants', ...HTTP2, STATUS, '--data-binary', `@${path}`, ...JSON_BODY)
      }
      const list = () =>
        curl(`/garden/plants?client=[1-${REQUESTS}]`, ...HTTP2, STATUS, '--header', `Authorization: Bearer ${token}`)
      const several = (ask: () => Promise<string>) => Array.from({ length: CLIENTS }, ask)

      for (const bytes of REFUSED_BYTES) {
        const refused = await refuse(bytes)
        const answers = await Promise.all([...several(refused), ...several(refused), ...several(list)])
        answers.push(...(await Promise.all(several(list))))
        expect(new Set(answers)).toEqual(new Set(['2 401\n', '2 200\n'.repeat(REQUESTS)]))
      }
      expect(behind.stderr()).not.toMatch(/(?:from|live) upstream/)
    },
  )

  test.skipIf(lacks(OPENSSL, program(proxy.name)))(
    'answers all clients while others send trailers behind a chunked body, cut anywhere, by HTTP/1.1 and 2',
    async () => {
      await using behind = await startBehind(proxy)
      const authorization = ['--header', `Authorization: Bearer ${behind.token}`]
      const path = `/garden/plants?client=[1-${MANY_REQUESTS}]`
      const listing = Array.from({ length: CLIENTS }, () => behind.curl(path, ...HTTP2, STATUS, ...authorization))
      const told: (number | undefined)[] = []
      const send = async () => {
        for (let cut = 0; cut < CUTS; cut++) told.push(await sendByHttp1(behind, cut), await sendByHttp2(behind))
      }
      await Promise.all(Array.from({ length: CLIENTS }, send))

      const answers = (await Promise.all(listing)).join('').trimEnd().split('\n')
      expect(new Set(answers)).toEqual(new Set(['2 200']))
      expect(told.filter((status) => status !== undefined && status !== 400 && status !== 401)).toEqual([])
      expect(told.filter(Boolean).length).toBeGreaterThanOrEqual(CLIENTS * CUTS)
      expect(behind.stderr()).not.toMatch(/(?:from|live) upstream/)
    },
  )

  test.skipIf(lacks(OPENSSL, program(proxy.name)))(
    'answers each request while servers stall and one restarts, and a plant is there exactly if its client was told so',
    async () => {
      await using behind = await startBehind(proxy)
      const { token, servers, curl, tryCurl, restart } = behind
      const authorization = ['--header', `Authorization: Bearer ${token}`]
      const put = [...authorization, ...JSON_BODY, '--request', 'PUT', '--data', '{"name":"Fern"}']
      const flags = [...HTTP2, `${STATUS.trim()} %{url}\n`, '--parallel', '--parallel-max', String(AT_ONCE)]
      /** What clients were told of each plant. */
      const told = new Map<number, string>()
      let isOver = false
      const burst = async () => {
        const first = told.size
        const answers = await tryCurl(`/garden/plants/[${first}-${first + BURST - 1}]`, ...put, ...flags)
        for (const [, status = '', id] of answers.matchAll(/^(.*) \S+\/(\d+)$/gm)) told.set(Number(id), status)
        expect(told.size).toBe(first + BURST)
      }
      const load = async () => {
        while (!isOver) await burst()
      }
      const statuses = (from = 0) => new Set([...told.values()].slice(from))
      /** Resolves to what clients are told while all servers stand still; `undefined` if that took longer than it should. */
      const stall = async () => {
        await until('a server answers', async (see) => see(await tryCurl('/garden/readyz')).includes('"ok"'))
        const startMs = performance.now()
        for (const { pid } of servers) process.kill(pid, 'SIGSTOP')
        const asked = []
        for (const ms of STALL_MS) {
          await Bun.sleep(ms)
          asked.push(tryCurl('/garden/token', ...authorization, ...HTTP2, STATUS))
        }
        for (const { pid } of servers) process.kill(pid, 'SIGCONT')
        const isShort = performance.now() - startMs < STALL_MAX_MS
        const answers = await Promise.all(asked)
        return isShort ? answers : undefined
      }

      expect(await until('servers stall for less than a second', stall)).toEqual(STALL_MS.map(() => '2 200\n'))
      await Promise.all([load(), restart(0).finally(() => (isOver = true))])
      expect([...statuses()].filter((status) => ![CREATED, ...proxy.down].includes(status))).toEqual([])
      const before = told.size
      await burst()

      expect(statuses(before)).toEqual(new Set([CREATED]))
      const plants = JSON.parse(await curl('/garden/plants?include=id', ...authorization))
      const created = [...told].flatMap(([id, status]) => (status === CREATED ? [id] : []))
      expect(plants.map(({ id }: { id: number }) => id)).toEqual(created.sort((a, b) => a - b))
    },
  )
})

const DEFLATE = 'AddOutputFilterByType DEFLATE application/json'

/** What makes a proxy compress, behind a line of its example, and what an `ETag`, `If-None-Match` and `If-Match` then come to. */
const COMPRESSIONS = [
  ['nginx.conf', 'location /garden/ {', 'gzip on; gzip_types application/json;', 'W/"_" 304 412'],
  ['haproxy.cfg', 'frontend plants', 'compression algo gzip\ncompression type application/json', 'W/"_" 304 412'],
  ['Caddyfile', 'handle_path /garden/* {', 'encode gzip', '"_" 304 200'],
  ['apache.conf', 'SSLEngine on', DEFLATE, '"_-gzip" 200 412'],
  ['apache.conf', 'SSLEngine on', `DeflateAlterETag NoChange\n${DEFLATE}`, '"_" 304 200'],
] as const

describe.concurrent.each(COMPRESSIONS)(
  'the example of %s, and after %s the lines %j',
  (file, before, lines, outcome) => {
    const [proxy = PROXIES[0]] = PROXIES.filter((each) => each.file === file)

    test.skipIf(lacks(OPENSSL, program(`${proxy?.name}`)))(
      `compress, and make of preconditions ${outcome}`,
      async () => {
        if (proxy === undefined) throw new Error(file)
        const change = (example: string) => example.replace(before, `${before}\n${lines}\n`)
        await using behind = await startBehind({ ...proxy, servers: 1 }, change)
        const headers = [`Authorization: Bearer ${behind.token}`, 'Accept-Encoding: gzip'].flatMap((line) => [
          '--header',
          line,
        ])
        const ask = (...args: readonly string[]) => behind.curl('/garden/plants/1', ...headers, ...args)
        const status = ['--output', '/dev/null', '--write-out', '%{http_code}']
        const put = ['--request', 'PUT', ...JSON_BODY, '--data', JSON.stringify({ name: 'x'.repeat(5000) })]
        await ask(...put)
        const head = await ask('--dump-header', '-', '--output', '/dev/null')
        const [, etag = ''] = /^etag: (.*)\r$/im.exec(head) ?? []
        const read = await ask('--header', `If-None-Match: ${etag}`, ...status)
        const written = await ask('--header', `If-Match: ${etag}`, ...status, ...put)

        expect(head).toMatch(/^content-encoding: gzip\r$/im)
        expect(`${etag.replace(/[\w-]{43}/, '_')} ${read} ${written}`).toBe(outcome)
      },
    )
  },
)
