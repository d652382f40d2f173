import { describe, expect } from 'bun:test'
import { makeFolder } from '../support/folder.ts'
import { readSlowly } from './clients.ts'
import { startService } from './others.ts'
import { PROCESSES_ARE_SKIPPED, PROCESSES_NOTE } from './process.ts'
import { testLong } from './scale.ts'

const PLANTS = 100_000
/** A telephone at the edge of its network. The kernel's send buffer then drains for minutes. */
const BYTES_PER_SECOND = 16 * 1024

/** Of the same plants, in the two ways in which an answer is sent: in chunks, and with a `Content-Length`. */
const LISTS = [['without a limit', '']] as const

describe.skipIf(PROCESSES_ARE_SKIPPED).concurrent.each(LISTS)(`a list %s${PROCESSES_NOTE}`, (_, query) => {
  testLong('arrives whole at a client that reads 16 KB/s, with the default idle timeout', async () => {
    using folder = makeFolder()
    await using service = await startService(folder.path, PLANTS)

    const startMs = performance.now()
    const list = await readSlowly(service.server.port, service.token, BYTES_PER_SECOND, query)
    const plants = await list.plants()

    console.log(`${plants} plants after ${((performance.now() - startMs) / 1000).toFixed(0)} s`)
    expect(plants).toBe(PLANTS)
  })
})
