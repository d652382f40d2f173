import { describe, expect } from 'bun:test'
import { lacks } from '../support/requirement.ts'
import { readSlowly } from './clients.ts'
import { serveOthers } from './other-clients.ts'
import { PROCESS_TOOLS } from './process.ts'
import { testLong } from './rounds.ts'

/** Far longer than the buffers of a connection. */
const PLANTS = 400_000
/** At this pace the kernel's send buffer drains for minutes. */
const BYTES_PER_SECOND = 16 * 1024

/** The two ways to send an answer: in chunks, and with a `Content-Length`. */
const LISTS = [
  ['without a limit', '', PLANTS],
  ['with a limit', '?limit=200000', 200_000],
] as const

describe.skipIf(lacks(PROCESS_TOOLS)).concurrent.each(LISTS)('a list %s', (_, query, count) => {
  testLong('arrives whole at a client that reads 16 KB/s, with the default idle timeout', async () => {
    await using service = await serveOthers(PLANTS)

    const startMs = performance.now()
    const list = await readSlowly(service.server.port, service.token, BYTES_PER_SECOND, query)
    const plants = await list.plants()

    console.log(`${plants} plants after ${((performance.now() - startMs) / 1000).toFixed(0)} s`)
    expect(plants).toBe(count)
  })
})
