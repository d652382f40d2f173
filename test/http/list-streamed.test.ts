import { describe, expect, test } from 'bun:test'
import type { Store } from '../../src/domain/store.ts'
import { hashToken, tokenText, type UserId } from '../../src/domain/token.ts'
import { createApp } from '../../src/http/app.ts'
import { PAGE_PLANTS } from '../../src/http/list.ts'
import { listen } from '../../src/http/server.ts'
import { createLogger } from '../../src/log.ts'
import { exchange } from '../support/raw.ts'
import { SOCKET_TRANSPORTS, startService, TRANSPORTS } from '../support/service.ts'
import { STORES } from '../support/stores.ts'

const LAST_CHUNK = '\r\n0\r\n\r\n'
const MANY = 2 * PAGE_PLANTS + 1
const FAULT = new Error('a page that cannot be read')

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
    expect(reads.slice(0, 3)).toEqual([1, 2, 3])
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
    await using server = await serve(store)

    const head = await exchange(server.port, get(token).replace('GET', 'HEAD'))

    expect([head.status, head.body, calls()]).toEqual([200, '', 0])
  })

  test('is cut without the last chunk if it fails half-way', async () => {
    await using opened = await implementation.open()
    const { user, token } = await createUser(opened.store)
    await createMany(opened.store, user)

    for (const version of ['1.1', '1.0']) {
      const firstPage = Promise.withResolvers<void>()
      const { store, calls } = failingOn(3, opened.store, () => firstPage.promise)
      await using server = await serve(store)

      const answer = await readToTheEnd(server.port, get(token, version), (text) => {
        if (text.includes('"998"')) firstPage.resolve()
      })

      expect(calls()).toBe(3)
      expect(answer).toStartWith('HTTP/1.1 200 ')
      expect(answer).toContain('[{"name":"0"},{"name":"2"}')
      expect(answer).not.toContain(']')
      expect(answer).not.toContain('\r\n0\r\n')
    }
  })

  test('is cut without the last chunk if it fails before anything was sent', async () => {
    await using opened = await implementation.open()
    const { user, token } = await createUser(opened.store)
    await createMany(opened.store, user)
    const { store, calls } = failingOn(2, opened.store)
    await using server = await serve(store)

    const answer = await readToTheEnd(server.port, get(token), () => {})

    expect(calls()).toBe(2)
    expect(answer).not.toContain(']')
    expect(answer).not.toContain('\r\n0\r\n')
  })

  test('fails for a client that reads it as a whole, and for the log, if it fails half-way', async () => {
    await using opened = await implementation.open()
    const { user, token } = await createUser(opened.store)
    await createMany(opened.store, user)
    const { store, calls } = failingOn(3, opened.store)
    await using server = await serve(store)

    const reading = fetch(`http://127.0.0.1:${server.port}/plants`, { headers: bearer(token) })
    const outcome = await reading.then((response) => response.text()).catch(() => 'cut')

    expect([outcome, calls()]).toEqual(['cut', 3])
    expect(server.logs()).toContain('"level":"error"')
    expect(server.logs()).toContain(FAULT.message)
  })

  test('is answered with an error if it fails at once', async () => {
    await using opened = await implementation.open()
    const { token } = await createUser(opened.store)

    const response = await appOf(failingOn(1, opened.store).store)(listRequest(token))

    const message = expect.not.stringContaining(FAULT.message)
    expect([response.status, await response.json()]).toEqual([500, { error: 50000, message }])
  })
})

/** What is listed is in order, each plant once, and of the even ids exactly those that were there throughout. */
function expectListed(listed: readonly string[], kept: readonly string[]): void {
  expect(listed).toEqual([...new Set(listed)].toSorted((a, b) => Number(a) - Number(b)))
  const known = new Set(kept)
  expect(listed.filter((name) => known.has(name))).toEqual([...kept])
}

const namesIn = (text: string): string[] => JSON.parse(text).map((plant: { name: string }) => plant.name)

async function createEven(store: Store, user: UserId, index: number): Promise<string> {
  await store.createPlant(user, { id: BigInt(2 * index), name: String(2 * index) })
  return String(2 * index)
}

/** Creates plants with even ids, on three pages. Returns their names in the order of their ids. */
async function createMany(store: Store, user: UserId): Promise<string[]> {
  const names: string[] = []
  while (names.length < MANY) names.push(await createEven(store, user, names.length))
  return names
}

async function userIdOf(store: Store, userName: string): Promise<UserId> {
  const [token] = await store.listTokens(userName)
  if (token === undefined) throw new Error(`user ${userName} has no token`)
  return token.userId
}

async function createUser(store: Store): Promise<{ user: UserId; token: string }> {
  const token = tokenText(crypto.getRandomValues(new Uint8Array(32)))
  await store.createToken({
    userName: 'me',
    hash: hashToken(token),
    scope: 'read',
    label: undefined,
    createdAtMs: Date.now(),
    expiresAtMs: undefined,
  })
  return { user: await userIdOf(store, 'me'), token }
}

const appOf = (store: Store, write = (_line: string) => {}) =>
  createApp({
    store,
    noteUse: () => {},
    log: createLogger('error', { write }),
    logsRequests: false,
    lifecycle: { isDraining: false },
    maxBodyBytes: 65536,
    listMax: undefined,
    servesDocs: false,
    publicUrl: undefined,
    nowMs: Date.now,
    monotonicMs: () => performance.now(),
  })

async function serve(store: Store) {
  let lines = ''
  const app = appOf(store, (line) => {
    lines += line
  })
  const server = await listen({ host: '127.0.0.1', port: 0 }, app)
  if (!('port' in server.address)) throw new Error('the server has no port')
  return { port: server.address.port, logs: () => lines, [Symbol.asyncDispose]: async () => void server.kill() }
}

/** The real store, and how many pages were asked of it. */
const counted = (store: Store) => failingOn(Number.POSITIVE_INFINITY, store)

/** The real store, but for one page, counted from 1, that fails when `ready` has been waited for. */
function failingOn(page: number, store: Store, ready = async () => {}) {
  let calls = 0
  const listPlants: Store['listPlants'] = async (...asked) => {
    calls++
    if (calls !== page) return store.listPlants(...asked)
    await ready()
    throw FAULT
  }
  return { store: { ...store, listPlants }, calls: () => calls }
}

/** Sends bytes and returns what comes back until the server closes. `onText` is told what is there so far. */
async function readToTheEnd(port: number, bytes: string, onText: (text: string) => void): Promise<string> {
  let text = ''
  const closed = Promise.withResolvers<void>()
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, chunk) {
        text += chunk.toString()
        onText(text)
      },
      close: () => closed.resolve(),
      error: (_, error) => closed.reject(error),
    },
  })
  socket.write(bytes)
  await closed.promise
  return text
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const get = (token: string, version = '1.1') =>
  `GET /plants HTTP/${version}\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`

const listRequest = (token: string, { method = 'GET', query = '' } = {}) =>
  new Request(`http://localhost/plants${query}`, { method, headers: bearer(token) })

/** The parts of an answer, each of which is read when it is asked for. */
async function* chunksOf(response: Response): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) yield typeof chunk === 'string' ? chunk : decoder.decode(chunk)
}
