import { describe, expect } from 'bun:test'
import { makeFolder } from '../support/folder.ts'
import { lacks } from '../support/requirement.ts'
import { readSlowly } from './clients.ts'
import { startService } from './other-clients.ts'
import { PROCESS_TOOLS } from './process.ts'
import { testLong } from './rounds.ts'

/** 13 MB: far more than the buffers of a connection hold. */
const PLANTS = 250_000
/** The kernel's send buffer then drains for minutes. */
const BYTES_PER_SECOND = 16 * 1024

/** In the two ways in which an answer is sent: in chunks, and with a `Content-Length`. */
const LISTS = [
  ['without a limit', '', PLANTS],
  ['with a limit', '?limit=150000', 150_000],
] as const

describe.skipIf(lacks(PROCESS_TOOLS)).concurrent.each(LISTS)('a list %s', (_, query, count) => {
  testLong('arrives whole at a client that reads 16 KB/s, with the default idle timeout', async () => {
    using folder = makeFolder()
    await using service = await startService(folder.path, PLANTS)

    const startMs = performance.now()
    const list = await readSlowly(service.server.port, service.token, BYTES_PER_SECOND, query)
    const plants = await list.plants()

    console.log(`${plants} plants after ${((performance.now() - startMs) / 1000).toFixed(0)} s`)
    expect(plants).toBe(count)
  })
})
