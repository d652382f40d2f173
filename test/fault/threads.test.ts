import { expect, test } from 'bun:test'
import { serveDatabase } from '../cli/support/database.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { makeFolder } from '../support/folder.ts'
import { AUDIENCE, startIssuer } from '../support/issuer.ts'
import { scrape, scrapeUntil } from '../support/metrics.ts'
import { countOpen, workersOf } from '../support/process.ts'
import type { Random } from '../support/random.ts'
import { type Connection, formatRequest, openConnection, openConnections } from '../support/raw-connection.ts'
import { lacks } from '../support/requirement.ts'
import { SLACK_MS } from '../support/slack.ts'
import { holdThread, STRACE } from '../support/strace.ts'
import { until } from '../support/until.ts'
import { testRounds } from './rounds.ts'
import { QUIET } from './test-database.ts'

const THREADS = 3
/** So many connections are on all of three threads, but once in 15 million runs: the kernel spreads them at random. */
const CONNECTIONS = 40
const STEPS = 300
const IDS = 12
const QUOTA = 8
const DRAIN_MS = 4000

/** Sends a request on one of several connections. Each keeps to the thread that has accepted it. */
type Send = (connection: number, method: string, path: string, body?: object) => ReturnType<Connection['request']>

testRounds(
  'a server with three threads answers over connections of all of them as a model does, until its token is revoked',
  { short: 1, long: 50 },
  async (random) => {
    await using service = await serveDatabase(['--threads', `${THREADS}`, '--quota-plants', String(QUOTA)])
    const { server, token } = service
    const connections = await openConnections(server.port, CONNECTIONS)
    const send: Send = async (index, method, path, body) =>
      (connections[index] as Connection).request(formatRequest(method, path, token, body))
    const plants = new Map<number, string>()
    for (let step = 0; step < STEPS; step++) await takeStep(send, plants, random)

    const listAll = () => Promise.all(connections.map((_, index) => send(index, 'GET', '/plants?limit=1')))
    // Now every thread has the token in its cache.
    expect((await listAll()).filter(({ status }) => status !== 200)).toEqual([])
    await service.run('token', 'revoke', '1')
    expect((await listAll()).filter(({ status }) => status !== 401)).toEqual([])
  },
)

/** Creates or deletes over any connection, lists over two, and expects what the model has. */
async function takeStep(send: Send, plants: Map<number, string>, random: Random): Promise<void> {
  const id = random(IDS)
  const any = random(CONNECTIONS)
  if (random(3) === 0) {
    const { status, body } = await send(any, 'DELETE', `/plants/${id}`)
    expect(status, body).toBe(plants.delete(id) ? 204 : 404)
  } else {
    const name = `Fern ${random(1000)}`
    const { status, body } = await send(any, 'POST', '/plants', { id, name })
    const refusal = plants.has(id) ? 409 : 403
    expect(status, body).toBe(plants.has(id) || plants.size >= QUOTA ? refusal : 200)
    if (status === 200) plants.set(id, name)
  }
  const expected = [...plants].sort(([a], [b]) => a - b).map(([, name]) => ({ name }))
  const other = random(CONNECTIONS)
  const lists = [other, (other + 1) % CONNECTIONS].map((index) => send(index, 'GET', '/plants?limit=20'))
  expect((await Promise.all(lists)).map(({ body }) => JSON.parse(body))).toEqual([expected, expected])
}

test('of deletes of the plant that all clients have seen one succeeds, and each request has a whole line in the log', async () => {
  await using service = await serveDatabase(['--threads', `${THREADS}`])
  const { server, token } = service
  const connections = await openConnections(server.port, CONNECTIONS)
  const [first] = connections
  const rounds = 25
  for (let round = 0; round < rounds; round++) {
    await first?.request(formatRequest('POST', '/plants', token, { id: 1, name: `Fern ${round}` }))
    const seen = await first?.request(formatRequest('GET', '/plants/1', token))
    const condition = `If-Match: ${seen?.headers.get('etag')}\r\n`
    const remove = formatRequest('DELETE', '/plants/1', token, undefined, condition)
    const answers = await Promise.all(connections.map((connection) => connection.request(remove)))
    expect(answers.filter(({ status }) => status === 204)).toHaveLength(1)
  }

  await server.end()
  const lines = server.stdout().trim().split('\n')
  const requests = lines.filter((line) => JSON.parse(line).msg === 'request')
  expect(requests).toHaveLength(rounds * (CONNECTIONS + 2))
})

test('all threads accept a JWT, know the user whom one of them has made, and refuse the user from the end of its block on', async () => {
  await using issuer = await startIssuer()
  const flags = ['--threads', `${THREADS}`, '--jwt-issuer', issuer.issuer, '--jwt-audience', AUDIENCE]
  await using service = await serveDatabase(flags)
  const jwt = await issuer.token()
  const connections = await openConnections(service.server.port, CONNECTIONS)
  const listAll = async () => {
    const request = formatRequest('GET', '/plants?limit=1', jwt)
    const answers = await Promise.all(connections.map((connection) => connection.request(request)))
    return new Set(answers.map(({ status, body }) => (status === 200 ? body : status)))
  }

  expect(await listAll()).toEqual(new Set(['[]']))
  const create = formatRequest('POST', '/plants', jwt, { id: 1, name: 'Fern' })
  expect(await connections[0]?.request(create)).toMatchObject({ status: 200 })
  expect(await listAll()).toEqual(new Set(['[{"name":"Fern"}]']))
  await service.run('user', 'block', '--subject', 'ada', '--jwt-issuer', issuer.issuer)
  expect(await listAll()).toEqual(new Set([401]))
})

test('a server without time to drain says how many requests all its threads cut', async () => {
  const flags = ['--threads', `${THREADS}`, '--drain', '0s', '--metrics-listen', '127.0.0.1:0']
  await using service = await serveDatabase([...flags, ...QUIET])
  const { server, token } = service
  const connections = await openConnections(server.port, CONNECTIONS)
  const half = formatRequest('POST', '/plants', token, { id: 1, name: 'Fern' }).slice(0, -5)
  await Promise.all(connections.map(({ send }) => send(half)))
  await scrapeUntil(server, (now) => now.plantstore_http_requests_in_flight === CONNECTIONS)

  expect(await server.end()).toBe(0)
  expect(server.stdout()).toContain(`"requests":${CONNECTIONS},"msg":"requests were cut`)
})

test('no counter falls while a server waits for a request', async () => {
  await using service = await serveDatabase(['--threads', `${THREADS}`, '--metrics-listen', '127.0.0.1:0', ...QUIET])
  const { server, token } = service
  const connections = await openConnections(server.port, CONNECTIONS)
  const list = formatRequest('GET', '/plants?limit=1', token)
  await Promise.all(connections.map((connection) => connection.request(list)))
  // Whichever thread has it, another one that serves no metrics has nothing to wait for.
  await connections[0]?.send(formatRequest('POST', '/plants', token, { id: 1, name: 'Fern' }).slice(0, -5))
  await scrapeUntil(server, (now) => now.plantstore_http_requests_in_flight === 1)
  const opened = () => countOpen(server.pid, `${service.database}-wal`)
  const before = opened()

  server.signal('SIGTERM')
  await until('a thread has closed the database', (see) => see(opened()) < before)

  const all = await scrape(server)

  expect(all['plantstore_http_requests_total{operation="listPlants",status="200"}']).toBe(CONNECTIONS)
})

test.skipIf(lacks(OPENSSL, STRACE))(
  'a thread that answers nothing delays metrics by a second at most, keeps the old certificate in use, and ends within --drain',
  async () => {
    using folder = makeFolder()
    const { certPath, keyPath } = await makeCertificate(folder.path, 'own')
    const files = ['--tls-cert', certPath, '--tls-key', keyPath]
    const flags = [
      ...files,
      '--threads',
      `${THREADS}`,
      '--drain',
      `${DRAIN_MS / 1000}s`,
      '--metrics-listen',
      '127.0.0.1:0',
    ]
    await using service = await serveDatabase([...flags, ...QUIET])
    const { server, token } = service
    const ca = await Bun.file(certPath).text()
    for (let count = 0; count < CONNECTIONS; count++) {
      using connection = await openConnection(server.port, { ca })
      await connection.request(formatRequest('GET', '/plants?limit=1', token))
    }
    const answered = 'plantstore_http_requests_total{operation="listPlants",status="200"}'
    expect(await scrape(server)).toMatchObject({ plantstore_threads_silent: 0, [answered]: CONNECTIONS })

    using held = await holdThread(workersOf(server.pid).at(-1) ?? 0)
    await scrapeUntil(server, (now) => now.plantstore_threads_silent === 1)
    const startMs = performance.now()
    expect(await scrape(server)).toMatchObject({ plantstore_threads_silent: 1, [answered]: CONNECTIONS })
    expect(performance.now() - startMs).toBeWithin(0, 1000 + SLACK_MS)

    server.signal('SIGHUP')
    await until('it keeps its certificate', (see) => see(server.stdout()).includes('the certificate stays as it is'))
    server.signal('SIGTERM')
    await until('it has ended', (see) => see(server.stdout()).includes('"msg":"ended"'))
    const [endingMs = 0, endedMs = 0] = ['ending', 'ended'].map((msg) =>
      Date.parse(new RegExp(`"time":"([^"]+)".*"msg":"${msg}"`).exec(server.stdout())?.[1] ?? ''),
    )
    expect(endedMs - endingMs).toBeWithin(DRAIN_MS / 2, DRAIN_MS)
    // Only now the tracer lets go of the thread.
    held[Symbol.dispose]()
    expect(await server.ended()).toBe(0)
  },
)
