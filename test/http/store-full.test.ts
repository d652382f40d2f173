import { describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../src/store/open.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { lacks } from '../support/requirement.ts'
import { createToken } from '../support/tokens.ts'
import { SQLITE_TRANSPORTS, type Transport } from './support/service.ts'

const DISK_BYTES = 1024 * 1024
/** What is left on the full disk before the first plant: some plants fit in, and then none. */
const ROOM_BYTES = 128 * 1024
const PLANTS_MAX = 1000
const NAME = 'Monstera deliciosa '.repeat(100)

const FULL = {
  status: 503,
  retryAfter: '1',
  body: {
    error: 50301,
    message: 'The store is out of space or read-only, nothing was stored: try again later.',
  },
}

async function startOn(path: string, transport: Transport) {
  const database = join(path, 'plantstore.db')
  const store = await openStore(database, () => {})
  const { text: token } = await createToken(store)
  const service = await transport.start(store, database, {})
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const request = async (method: string, path: string, body?: object) => {
    const response = await service.fetch(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    const text = await response.text()
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      body: text === '' ? undefined : JSON.parse(text),
    }
  }
  return {
    store,
    create: (id: number, name = NAME) => request('POST', '/plants', { id, name }),
    request,
    count: async () => (await request('GET', '/plants')).body.length,
    async [Symbol.asyncDispose]() {
      await service.stop()
      await store.close()
    },
  }
}

describe.skipIf(lacks(MOUNTS)).each(SQLITE_TRANSPORTS)('a full disk, $name', (transport) => {
  test('refuses writes with 50301 and stores nothing of them, lists go on, and with room again all is well', async () => {
    using disk = mountDisk(DISK_BYTES)
    await using service = await startOn(disk.path, transport)
    const ballast = disk.fillUp(ROOM_BYTES)

    let stored = 0
    let answer = await service.create(1)
    while (answer.status === 200 && stored < PLANTS_MAX) {
      stored += 1
      answer = await service.create(stored + 1)
    }

    expect(stored).toBeGreaterThan(0)
    expect(answer).toEqual(FULL)
    expect(await service.request('DELETE', '/plants/1')).toEqual(FULL)
    expect(await service.request('GET', '/readyz')).toEqual(FULL)
    expect(await service.count()).toBe(stored)
    expect(await service.request('GET', '/plants?limit=1')).toMatchObject({ status: 200, body: [{ name: NAME }] })
    expect(await service.request('GET', '/healthz')).toMatchObject({ status: 200 })

    rmSync(ballast)

    // The id of the plant that was refused is free: it was not stored.
    expect(await service.create(stored + 1)).toMatchObject({ status: 200, body: { name: NAME } })
    expect(await service.request('DELETE', '/plants/1')).toMatchObject({ status: 204 })
    expect(await service.count()).toBe(stored)
    while ((await service.request('GET', '/readyz')).status !== 200) await Bun.sleep(10)
    expect(await service.store.checkIntegrity()).toEqual([])
  })
})
