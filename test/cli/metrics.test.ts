import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { version } from '../../package.json'
import { tokenText } from '../../src/domain/token.ts'
import { ERRORS } from '../../src/http/answers.ts'
import { makeCertificate, OPENSSL } from '../support/certificates.ts'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { metricsUrlOf, type Series, scrape, scrapeUntil, seriesOf } from '../support/metrics.ts'
import { freePort } from '../support/postgres-system.ts'
import { PROMTOOL, runPromtool } from '../support/promtool.ts'
import { lacks } from '../support/requirement.ts'
import { addLongPlants, requestAndWait, sendHalf } from '../support/slow.ts'
import { injectFault, STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

/** A server with metrics on a database with a token. */
async function startMetered(flags: readonly string[] = []) {
  const service = await serveDatabase(['--metrics-listen', '127.0.0.1:0', ...flags])
  const { server, token } = service
  const create = (id: number) => server.request('POST', '/plants', { token, body: { id, name: 'Fern' } })
  const list = (query: string) => server.request('GET', `/plants${query}`, { token })
  return { ...service, create, list }
}

const TEXT_FORM = 'text/plain; version=0.0.4; charset=utf-8'
const REJECTED = 'plantstore_http_requests_rejected_total'
const REASONS = Object.keys(ERRORS)

const isInFlight = (count: number) => (all: Series) => all.plantstore_http_requests_in_flight === count

type Metered = Awaited<ReturnType<typeof startMetered>>

/** Keeps a create in flight: a part of its body is missing. */
const holdCreate = ({ server, token }: Metered) =>
  sendHalf(
    server.port,
    `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{`,
  )

/** Expects that the buckets are cumulative, and that the last one counts all values. */
function expectBuckets(all: Series, name: string, labels: string): void {
  const counts = Object.entries(all).filter(([series]) => series.startsWith(`${name}_bucket{${labels}le=`))
  const values = counts.map(([, count]) => count)
  expect(counts.at(-1)?.[0]).toBe(`${name}_bucket{${labels}le="+Inf"}`)
  expect(values).toEqual([...values].sort((a, b) => a - b))
  expect(values.at(-1)).toBe(all[`${name}_count${labels && `{${labels.slice(0, -1)}}`}`])
}

describe.concurrent('the metrics of requests', () => {
  test('count requests and durations by operation and status', async () => {
    await using metered = await startMetered(['--max-body', '100B'])
    const { server, token, create, list } = metered
    for (const id of [1, 2, 2]) await create(id)
    for (const query of ['?limit=1', '?limit=1', '?limit=x', '']) await (await list(query)).text()
    await server.request('HEAD', '/plants?limit=1', { token })
    await server.request('DELETE', '/plants/1', { token })
    await server.request('DELETE', '/plants/1', { token })
    await server.request('POST', '/plants', { token, body: 'x'.repeat(101) })
    for (const path of ['/healthz', '/readyz', '/docs', '/openapi.json', '/plants', '/']) {
      await server.request('GET', path)
    }
    await server.request('PUT', '/plants', { token })
    await server.request('OPTIONS', '/plants')
    await server.request('GET', '/plants/1', { token })
    const all = await scrape(server)

    const requests = seriesOf(all, 'plantstore_http_requests_total')
    expect(requests).toEqual({
      'operation="createPlant",status="200"': 2,
      'operation="createPlant",status="409"': 1,
      'operation="createPlant",status="413"': 1,
      'operation="listPlants",status="200"': 4,
      'operation="listPlants",status="400"': 1,
      'operation="listPlants",status="401"': 1,
      'operation="deletePlant",status="204"': 1,
      'operation="deletePlant",status="404"': 1,
      'operation="getPlant",status="404"': 1,
      'operation="health",status="200"': 1,
      'operation="ready",status="200"': 1,
      'operation="docs",status="200"': 2,
      'operation="page",status="404"': 1,
      'operation="other",status="405"': 1,
      'operation="other",status="204"': 1,
    })
    const durations = 'plantstore_http_request_duration_seconds'
    for (const [operation, count] of Object.entries(seriesOf(all, `${durations}_count`))) {
      const ofOperation = Object.entries(requests).filter(([labels]) => labels.startsWith(`${operation},`))
      expect([operation, count]).toEqual([operation, ofOperation.reduce((sum, [, each]) => sum + each, 0)])
    }
    expectBuckets(all, durations, 'operation="createPlant",')
  })

  test('count errors by their kind', async () => {
    await using metered = await startMetered(['--rate-limit', '2/h'])
    const { server, token, create, list } = metered
    const before = seriesOf(await scrape(server), REJECTED)
    const statuses = [await create(1), await list('?limit=1'), await list('?limit=1')].map(({ status }) => status)
    await server.request('GET', '/nothing')
    await server.request('GET', '/plants')
    await server.request('GET', '/plants', { token: 'wrong' })
    await server.request('PUT', '/plants', { token })
    const after = await scrape(server)

    expect(statuses).toEqual([200, 200, 429])
    expect(before).toEqual(Object.fromEntries(REASONS.map((reason) => [`reason="${reason}"`, 0])))
    expect(seriesOf(after, REJECTED, { isNonZero: true })).toEqual({
      'reason="rate_exceeded"': 1,
      'reason="path_unknown"': 1,
      'reason="token_missing"': 1,
      'reason="token_invalid"': 1,
      'reason="method_not_allowed"': 1,
    })
  })

  test('show the requests in flight: while a body is missing, and until a list ends', async () => {
    await using metered = await startMetered()
    const { server, database, token } = metered
    addLongPlants(database)
    using held = await holdCreate(metered)
    await scrapeUntil(server, isInFlight(1))
    const head = `GET /plants HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`
    using slow = await requestAndWait(server.port, head)
    using gone = await requestAndWait(server.port, head)
    await scrapeUntil(server, isInFlight(3))
    gone.cut()
    await scrapeUntil(server, isInFlight(2))
    held.cut()
    await scrapeUntil(server, isInFlight(1))

    expect(await slow.readToEnd()).toEndWith('\r\n0\r\n\r\n')
    await scrapeUntil(server, isInFlight(0))
  })

  test('count cache hits and misses', async () => {
    await using metered = await startMetered(['--threads', '1'])
    const { server, create, list } = metered
    // How many of them are hits depends on the time between two requests.
    const countLookups = async () => {
      const all = await scrape(server)
      const [hits, misses] = ['hits', 'misses'].map((outcome) => seriesOf(all, `plantstore_cache_${outcome}_total`))
      return ['callers', 'lists'].map(
        (cache) => (hits?.[`cache="${cache}"`] ?? 0) + (misses?.[`cache="${cache}"`] ?? 0),
      )
    }
    // A create looks up its token again if its body comes later than its head.
    await create(1)
    const [callers = 0] = await countLookups()
    for (const query of ['?limit=1', '?limit=1', '?limit=2', '']) await (await list(query)).text()
    expect(await countLookups()).toEqual([callers + 4, 3])
    const hasHits = (series: Series) =>
      Object.values(seriesOf(series, 'plantstore_cache_hits_total')).every((count) => count > 0)
    while (!hasHits(await scrape(server))) await (await list('?limit=1')).text()
  })

  test('have no labels for users, tokens, ids or paths, and more of those make no more series', async () => {
    await using metered = await startMetered()
    const { server, token, database, create } = metered
    const seriesAfter = async (word: string, id: number) => {
      await create(id)
      const other = await createTokenIn(database, word)
      for (const text of [token, other, word]) {
        for (const method of ['GET', 'PUT', 'DELETE']) {
          for (const path of [`/${word}`, `/plants/${word}`, `/plants?limit=${word}`, `/${other}`]) {
            await server.request(method, path, { token: text })
          }
        }
      }
      return Object.keys(await scrape(server))
    }
    const first = await seriesAfter('first', 7234567)

    const labels = first.flatMap((series) => series.match(/[a-z_]+(?==")/g) ?? [])
    expect(new Set(labels)).toEqual(
      new Set(['operation', 'status', 'reason', 'cache', 'le', 'version', 'bun_version', 'thread']),
    )
    expect(await seriesAfter('second', 8234567)).toEqual(first)
  })
})

describe.concurrent('the metrics of the store', () => {
  test('count writes, groups and syncs, and show an empty queue', async () => {
    await using metered = await startMetered()
    const { server, create } = metered
    await Promise.all(Array.from({ length: 50 }, (_, id) => create(id)))
    // The use of the token is one more write.
    const all = await scrape(server)

    const writes = all.plantstore_write_group_size_sum ?? 0
    const groups = all.plantstore_write_group_size_count ?? 0
    expect(writes).toBeWithin(50, 52)
    expect(groups).toBeWithin(1, writes + 1)
    expect(all.plantstore_sync_duration_seconds_count).toBe(groups)
    expect(all.plantstore_sync_duration_seconds_sum).toBeWithin(0.000001, 60)
    expectBuckets(all, 'plantstore_write_group_size', '')
    expectBuckets(all, 'plantstore_sync_duration_seconds', '')
    expect([all.plantstore_write_queue_length, all.plantstore_write_queue_age_seconds]).toEqual([0, 0])
    expect(seriesOf(all, 'plantstore_writes_refused_total')).toEqual({ 'reason="queue_full"': 0, 'reason="locked"': 0 })
  })

  test.skipIf(lacks(STRACE))('show how many writes wait for the disk, and how long', async () => {
    await using metered = await startMetered()
    const { server, create } = metered
    await create(0)
    let creates: Promise<unknown>
    {
      await using _slow = await injectFault(server.pid, ['fsync', 'fdatasync'], 'delay_enter=2s')
      creates = Promise.all([1, 2, 3].map((id) => create(id)))
      const all = await scrapeUntil(server, (now) => (now.plantstore_write_queue_length ?? 0) >= 3)
      expect(all.plantstore_http_requests_in_flight).toBe(3)
      await scrapeUntil(server, (now) => (now.plantstore_write_queue_age_seconds ?? 0) > 0.5)
      await creates
    }
    // The use of the token may have been written meanwhile.
    const after = await scrapeUntil(server, (now) => now.plantstore_write_queue_length === 0)
    expect(after.plantstore_write_queue_age_seconds).toBe(0)
    expect(after.plantstore_sync_duration_seconds_sum).toBeWithin(2, 60)
  })
})

describe.concurrent('the metrics', () => {
  test('have no values of a store that is out of reach, and all others', async () => {
    const unused = freePort()
    await using server = await serve(`postgres://me@127.0.0.1:${unused}/plants`, ['--metrics-listen', '127.0.0.1:0'])
    const { status } = await server.request('GET', '/plants', { token: tokenText(new Uint8Array(32)) })
    const all = await scrape(server)

    expect(status).toBe(503)
    expect(all.plantstore_database_size_bytes).toBeUndefined()
    expect(all[`${REJECTED}{reason="store_failed"}`]).toBe(1)
    const logged = 'the store could not be measured, so these metrics are left out'
    await until('the log says so', () => server.stdout().includes(logged))
  })

  test.skipIf(lacks(OPENSSL))('tell when the certificate ends, with TLS alone', async () => {
    using folder = makeFolder()
    const { certPath, keyPath } = await makeCertificate(folder.path, 'server', { days: 3 })
    await using metered = await startMetered(['--tls-cert', certPath, '--tls-key', keyPath])
    await using plain = await startMetered()
    const { plantstore_certificate_expires_in_seconds: leftS } = await scrape(metered.server)

    expect(leftS).toBeWithin(3 * 86_400 - 600, 3 * 86_400 + 1)
    expect((await scrape(plain.server)).plantstore_certificate_expires_in_seconds).toBeUndefined()
  })

  test('count the bytes of all bodies', async () => {
    await using metered = await startMetered()
    const { server, create, list } = metered
    await create(1)
    const { length } = await (await list('')).text()

    // The answer to the create is the plant alone.
    expect((await scrape(server)).plantstore_http_response_body_bytes_total).toBe('{"name":"Fern"}'.length + length)
  })

  test('show the sizes of the files, the version, and the CPU time and memory of the process', async () => {
    await using metered = await startMetered(['--threads', '1'])
    await metered.create(1)
    const all = await scrapeUntil(
      metered.server,
      (now) => (now['nodejs_eventloop_lag_max_seconds{thread="0"}'] ?? 0) > 0,
    )

    expect(all.plantstore_database_size_bytes).toBe(statSync(metered.database).size)
    expect(all.plantstore_wal_size_bytes).toBe(statSync(`${metered.database}-wal`).size)

    expect(all[`plantstore_build_info{version="${version}",bun_version="${Bun.version}"}`]).toBe(1)
    expect(all.process_resident_memory_bytes).toBeWithin(10e6, 10e9)
    expect(all.process_cpu_seconds_total).toBeWithin(0.001, 60)
    expect(all.process_start_time_seconds).toBeWithin(Date.now() / 1000 - 60, Date.now() / 1000 + 1)
    expect(all.process_open_fds).toBeWithin(5, all.process_max_fds ?? 0)
    expect(all['nodejs_eventloop_lag_p99_seconds{thread="0"}']).toBeWithin(0.000001, 60)
  })

  test.skipIf(lacks(PROMTOOL))('pass the check of promtool', async () => {
    await using metered = await startMetered()
    const { server, create, list } = metered
    await create(1)
    await list('?limit=1')
    const text = await (await fetch(`${metricsUrlOf(server)}/metrics`)).text()

    expect(await runPromtool(['check', 'metrics'], { stdin: text })).toEqual({ text: '', exitCode: 0 })
    const faulty = text.replaceAll('plantstore_http_requests_total', 'plantstore_http_requests')
    expect((await runPromtool(['check', 'metrics'], { stdin: faulty })).exitCode).not.toBe(0)
  })
})

describe.concurrent('the address of the metrics', () => {
  test('answers /metrics in the text form of Prometheus, to GET and HEAD', async () => {
    await using metered = await startMetered()
    const url = `${metricsUrlOf(metered.server)}/metrics`
    const [get, head] = await Promise.all([fetch(`${url}?a=b`), fetch(url, { method: 'HEAD' })])

    for (const { status, headers } of [get, head]) {
      expect([status, headers.get('content-type'), headers.get('cache-control')]).toEqual([200, TEXT_FORM, 'no-store'])
    }
    expect(await get.text()).toStartWith('# HELP plantstore_')
    expect(await head.text()).toBe('')
  })

  test.each(['GET', 'HEAD'])('dates every answer to %s', async (method) => {
    const startedMs = Date.now()
    await using metered = await startMetered()
    const url = metricsUrlOf(metered.server)

    for (const path of ['/metrics', '/nothing']) {
      const { headers } = await fetch(url + path, { method })
      expect(Date.parse(headers.get('date') ?? ''), path).toBeWithin(startedMs - 1000, Date.now() + 1)
    }
  })

  test('answers every other path with 404, and the address of the service has no metrics', async () => {
    await using metered = await startMetered()
    const { server, token } = metered
    const ask = async (url: string, method: string) => {
      const answer = await fetch(url, { method, headers: { authorization: `Bearer ${token}` } })
      return [answer.status, await answer.text()]
    }
    const nothing = [404, '{"error":40401,"message":"There is nothing at this path: check how it is written."}']
    const url = metricsUrlOf(server)

    for (const path of ['/', '/metrics/', '/Metrics', '/plants', '/healthz', '/docs']) {
      expect([path, ...(await ask(url + path, 'GET'))]).toEqual([path, ...nothing])
    }
    expect(await ask(`${url}/metrics`, 'POST')).toEqual(nothing)
    expect(await ask(`${server.url}/metrics`, 'GET')).toEqual(nothing)
  })

  test('can be a unix socket, and does not exist by default', async () => {
    await using service = await serveDatabase()
    const unix = join(service.folder, 'metrics.sock')
    await using server = await serve(service.database, ['--metrics-listen', `unix:${unix}`])
    const answer = await fetch('http://localhost/metrics', { unix })

    expect([metricsUrlOf(server), metricsUrlOf(service.server)]).toEqual([`unix:${unix}`, ''])
    expect(await answer.text()).toContain('plantstore_build_info')
    expect(statSync(unix).mode & 0o777).toBe(0o600)
  })

  test('is refused in one line that names the option if another process uses it', async () => {
    await using metered = await startMetered()
    using other = makeDatabase()
    const address = metricsUrlOf(metered.server)
    const flags = ['--listen', '127.0.0.1:0', '--metrics-listen', new URL(address).host]

    expect(await other.run('serve', ...flags)).toMatchObject({
      stderr: `plantstore: Cannot listen on ${address}: another process listens there. Choose another with --metrics-listen.\n`,
      exitCode: 1,
    })
  })

  test('answers until the server has ended', async () => {
    await using metered = await startMetered()
    const { server } = metered
    using held = await holdCreate(metered)
    await scrapeUntil(server, isInFlight(1))
    server.signal('SIGTERM')
    await until('the server is ending', () => server.stdout().includes('"ending"'))
    const whileEnding = await scrape(server)
    held.cut()
    await server.ended()

    expect(whileEnding.plantstore_http_requests_in_flight).toBe(1)
    await expect(scrape(server)).rejects.toThrow()
  })
})
