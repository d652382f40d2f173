import { describe, expect, test } from 'bun:test'
import { type Series, scrapeUntil, seriesOf } from '../support/metrics.ts'
import { lacks } from '../support/requirement.ts'
import { addLongPlants, requestAndWait, sendHalf } from '../support/slow.ts'
import { injectFault, STRACE } from '../support/strace.ts'
import { until } from '../support/until.ts'
import { serveDatabase } from './support/database.ts'

/** A server with metrics on a database with a token. */
async function startMetered(flags: readonly string[] = []) {
  const service = await serveDatabase(['--metrics-listen', '127.0.0.1:0', ...flags])
  const { server, token } = service
  const create = (id: number) => server.request('POST', '/plants', { token, body: { id, name: 'Fern' } })
  const list = (query: string) => server.request('GET', `/plants${query}`, { token })
  return { ...service, create, list }
}

/** So many writes are in all of three threads, but once in a thousand runs. */
const WAITING = 20
const ageOf = (all: Series) => all.plantstore_write_queue_age_seconds ?? 0

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
})

describe.concurrent('the metrics of the store', () => {
  test('count writes, groups and syncs, and show an empty queue', async () => {
    await using metered = await startMetered()
    const { server, create } = metered
    await Promise.all(Array.from({ length: 50 }, (_, id) => create(id)))
    // The use of the token is one more write.
    const all = await scrapeUntil(server, (now) => now.plantstore_write_queue_length === 0)

    const writes = all.plantstore_write_group_size_sum ?? 0
    const groups = all.plantstore_write_group_size_count ?? 0
    expect(writes).toBeWithin(50, 52)
    expect(groups).toBeWithin(1, writes + 1)
    expect(all.plantstore_sync_duration_seconds_count).toBe(groups)
    expect(all.plantstore_sync_duration_seconds_sum).toBeWithin(0.000001, 60)
    expectBuckets(all, 'plantstore_write_group_size', '')
    expectBuckets(all, 'plantstore_sync_duration_seconds', '')
    expect(all.plantstore_write_queue_age_seconds).toBe(0)
    expect(seriesOf(all, 'plantstore_writes_refused_total')).toEqual({ 'reason="queue_full"': 0, 'reason="locked"': 0 })
  })

  test.skipIf(lacks(STRACE))('show how many writes wait for the disk, and how long the oldest', async () => {
    await using metered = await startMetered(['--threads', '3'])
    const { server, create } = metered
    let ids = 0
    await create(ids)
    {
      await using _slow = await injectFault(server.pid, ['fsync', 'fdatasync'], 'delay_enter=2s')
      // A busy machine may look too late.
      await until('the writes are seen while they wait', async () => {
        const startMs = performance.now()
        const creates = Promise.all(Array.from({ length: WAITING }, () => create(++ids)))
        const areWaiting = (now: Series) =>
          isInFlight(WAITING)(now) && (now.plantstore_write_queue_length ?? 0) >= WAITING
        const isOver = () => Bun.peek.status(creates) !== 'pending'
        const seen = await scrapeUntil(server, (now) => isOver() || (areWaiting(now) && ageOf(now) > 0.5))
        expect(ageOf(seen)).toBeWithin(0, (performance.now() - startMs) / 1000)
        await creates
        return areWaiting(seen)
      })
    }
    // The use of the token may have been written meanwhile.
    const after = await scrapeUntil(server, (now) => now.plantstore_write_queue_length === 0)
    expect(after.plantstore_write_queue_age_seconds).toBe(0)
    expect(after.plantstore_sync_duration_seconds_sum).toBeWithin(2, 60)
  })
})
