import { describe, expect, test } from 'bun:test'
import type { Store } from '../../src/domain/store.ts'
import { PAGE_PLANTS } from '../../src/http/list.ts'
import { exchange } from '../support/raw-connection.ts'
import { STORES } from '../support/stores.ts'
import {
  appOf,
  createEven,
  createMany,
  createUser,
  failingOn,
  get,
  listRequest,
  MANY,
  serveApp,
  userIdOf,
} from './support/long-lists.ts'
import { SOCKET_TRANSPORTS, startService, TRANSPORTS } from './support/service.ts'

const LAST_CHUNK = '\r\n0\r\n\r\n'

describe.each(TRANSPORTS)('a list without a limit, $name', (transport) => {
  test('holds every plant once, however many pages it is read in', async () => {
    await using service = await startService(transport)
    const user = await userIdOf(service.store, 'me')

    const names: string[] = []
    for (const count of [0, 1, PAGE_PLANTS - 1, PAGE_PLANTS, PAGE_PLANTS + 1, 2 * PAGE_PLANTS, MANY]) {
      while (names.length < count) names.push(await createEven(service.store, user, names.length))
      expect(await service.names()).toEqual(names)
    }
    const after = await service.list(`?after=${2 * PAGE_PLANTS - 2}`)
    expect(after.body).toEqual(names.slice(PAGE_PLANTS).map((name) => ({ name })))
  })
})

describe.each(SOCKET_TRANSPORTS)('a list without a limit on the wire, $name', (transport) => {
  test('is sent in chunks, without Content-Length and ETag, up to a last chunk', async () => {
    await using service = await startService(transport)
    await createMany(service.store, await userIdOf(service.store, 'me'))

    const { status, headers, body, isClosed } = await exchange(service.port, get(service.token))

    expect([status, isClosed]).toEqual([200, true])
    expect(body.endsWith(LAST_CHUNK)).toBe(true)
    expect(body.slice(0, -LAST_CHUNK.length)).toEndWith(']')
    const { date: _, 'x-request-id': __, connection: ___, ...rest } = Object.fromEntries(headers)
    expect(rest).toEqual({
      'cache-control': 'no-store',
      'content-type': 'application/json',
      'transfer-encoding': 'chunked',
      'x-content-type-options': 'nosniff',
    })
  })

  test('holds every plant that was there throughout once, in order, while others come and go', async () => {
    await using service = await startService(transport)
    const names = await createMany(service.store, await userIdOf(service.store, 'me'))

    let changes = 0
    for (let round = 0; round < 5; round++) {
      let isListed = false
      const listing = service.names().finally(() => {
        isListed = true
      })
      while (!isListed) {
        const id = 2 * ((changes * 97) % MANY) + 1
        await service.create({ id, name: String(id) })
        await service.delete(id)
        changes++
      }
      expectListed(await listing, names)
    }
    expect(changes).toBeGreaterThanOrEqual(5)
  })
})

describe.each(STORES)('a list without a limit, read from $name', (implementation) => {
  test('holds a plant once where others around the place that was reached come and go', async () => {
    await using opened = await implementation.open()
    const { store } = opened
    const { user, token } = await createUser(store)
    const names = await createMany(store, user)
    const chunks = chunksOf(await appOf(store)(listRequest(token)))

    let text = (await chunks.next()).value ?? ''
    const reached = namesIn(`${text}]`)
    const kept = new Set(names)
    for (const name of [reached.at(-1), reached.at(-2), names.at(PAGE_PLANTS), names.at(-1)]) {
      await store.deletePlant(user, BigInt(name ?? 0))
      kept.delete(name ?? '')
    }
    for (const id of [-1n, 1n, BigInt(reached.at(-1) ?? 0) - 1n, BigInt(reached.at(-1) ?? 0) + 1n, 2n * BigInt(MANY)]) {
      await store.createPlant(user, { id, name: String(id) })
    }
    for await (const chunk of chunks) text += chunk

    expect(reached).toHaveLength(PAGE_PLANTS)
    expectListed(namesIn(text), [...kept])
  })

  test('is read no faster than the client takes it', async () => {
    await using opened = await implementation.open()
    const { user, token } = await createUser(opened.store)
    await createMany(opened.store, user)
    const { store, calls } = counted(opened.store)

    const chunks = chunksOf(await appOf(store)(listRequest(token)))
    const reads = [calls()]
    for await (const _ of chunks) reads.push(calls())

    // One page is read ahead, to know whether it is the last one.
    expect(reads.filter((count, taken) => count > taken + 1)).toEqual([])
    expect(calls()).toBe(3)
  })

  test('is not read on when the client has gone', async () => {
    await using opened = await implementation.open()
    const { user, token } = await createUser(opened.store)
    await createMany(opened.store, user)
    const { store, calls } = counted(opened.store)

    const chunks = chunksOf(await appOf(store)(listRequest(token)))
    await chunks.next()
    await chunks.return(undefined)

    expect(calls()).toBe(2)
  })

  test('is never read for HEAD', async () => {
    await using opened = await implementation.open()
    const { token } = await createUser(opened.store)
    const { store, calls } = counted(opened.store)
    const app = appOf(store)

    for (const query of ['', '?after=5', '?x=1']) {
      const response = await app(listRequest(token, { method: 'HEAD', query }))
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
    }
    expect(calls()).toBe(0)
    await app(listRequest(token, { method: 'HEAD', query: '?limit=5' }))
    expect(calls()).toBe(1)
  })

  test('is never read for HEAD over a socket', async () => {
    await using opened = await implementation.open()
    const { user, token } = await createUser(opened.store)
    await createMany(opened.store, user)
    const { store, calls } = counted(opened.store)
    await using server = await serveApp(store)

    const head = await exchange(server.port, get(token).replace('GET', 'HEAD'))

    expect([head.status, head.body, calls()]).toEqual([200, '', 0])
  })
})

/** What is listed is in order, each plant once, and of the even ids exactly those that were there throughout. */
function expectListed(listed: readonly string[], kept: readonly string[]): void {
  expect(listed).toEqual([...new Set(listed)].toSorted((a, b) => Number(a) - Number(b)))
  const known = new Set(kept)
  expect(listed.filter((name) => known.has(name))).toEqual([...kept])
}

const namesIn = (text: string): string[] => JSON.parse(text).map((plant: { name: string }) => plant.name)

/** The real store, and how many pages were asked of it. */
const counted = (store: Store) => failingOn(Number.POSITIVE_INFINITY, store)

/** The parts of an answer, each of which is read when it is asked for. */
async function* chunksOf(response: Response): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) yield typeof chunk === 'string' ? chunk : decoder.decode(chunk)
}
