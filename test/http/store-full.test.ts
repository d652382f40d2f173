import { describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { lacks } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { seen, unavailable } from './support/answers.ts'
import { expectDescribed } from './support/described.ts'
import { startService } from './support/service.ts'
import { openDatabase, SQLITE_TRANSPORTS } from './support/transports.ts'

const DISK_BYTES = 1024 * 1024
/** Room on the full disk before the first plant: some plants fit, and then none. */
const ROOM_BYTES = 128 * 1024
const PLANTS_MAX = 1000
const NAME = 'Monstera deliciosa '.repeat(100)

const FULL = unavailable(50301, 'The store is out of space or read-only, nothing was stored: try again later.')

describe.skipIf(lacks(MOUNTS)).each(SQLITE_TRANSPORTS)('a full disk, $name', (transport) => {
  test('refuses writes with 50301 and stores none of them, while lists go on, until there is room', async () => {
    using disk = mountDisk(DISK_BYTES)
    await using service = await startService({ ...transport, open: () => openDatabase({}, disk.path) })
    const ballast = disk.fillUp(ROOM_BYTES)

    let stored = 0
    let answer = await service.create({ id: 1, name: NAME })
    while (answer.status === 200 && stored < PLANTS_MAX) {
      stored += 1
      answer = await service.create({ id: stored + 1, name: NAME })
    }

    expect(stored).toBeGreaterThan(0)
    const undeleted = await service.delete(1)
    expect([answer, undeleted].map(seen)).toEqual([FULL, FULL])
    expectDescribed('POST', '/plants', answer)
    expectDescribed('DELETE', '/plants/1', undeleted)
    expect(seen(await service.request('GET', '/readyz'))).toEqual(FULL)
    expect(await service.names()).toHaveLength(stored)
    expect(await service.list('?limit=1')).toMatchObject({ status: 200, body: [{ name: NAME }] })
    expect(await service.request('GET', '/healthz')).toMatchObject({ status: 200 })

    rmSync(ballast)

    // The id of the plant that was refused is free: it was not stored.
    expect(await service.create({ id: stored + 1, name: NAME })).toMatchObject({ status: 200, body: { name: NAME } })
    expect(await service.delete(1)).toMatchObject({ status: 204 })
    expect(await service.names()).toHaveLength(stored)
    await until('the server is ready', async () => (await service.request('GET', '/readyz')).status === 200)
    expect(await service.store.checkIntegrity()).toEqual([])
  })
})
