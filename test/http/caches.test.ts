import { describe, expect, test } from 'bun:test'
import { OTHERS_SEEN_WITHIN_MS, type Store } from '../../src/domain/store.ts'
import { createTokenCache, TOKEN_CACHE_MAX_BYTES } from '../../src/http/authentication.ts'
import {
  CACHED_LIST_MAX_BYTES,
  createListCache,
  LIST_CACHE_MAX_BYTES,
  LISTS_PER_USER_MAX,
} from '../../src/http/lists/list-cache.ts'
import { LIST_MAX_BYTES } from '../../src/http/lists/render-list.ts'
import { appOptions } from '../support/app.ts'
import { AUDIENCE, makeKey, startIssuer } from '../support/issuer.ts'
import { SQLITE_STORES } from '../support/stores.ts'
import { createToken } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { startService } from './support/service.ts'
import { IN_PROCESS, type ServiceOptions, type Transport } from './support/transports.ts'

/** Reads can be counted in process only. test/store/postgres tests the versions that PostgreSQL gives. */
const COUNTED: readonly Transport[] = IN_PROCESS.flatMap((transport) =>
  SQLITE_STORES.map(({ name, open }) => ({
    ...transport,
    name,
    open: (options) => open({ ...options, monotonicMs: () => clock.monotonicMs }),
  })),
)
/** It stands still unless a test moves it: the versions that a store knows never expire. */
const clock = { monotonicMs: 0 }
/** Each of them has its share of the memory for caches. */
const THREADS = 3
/** A character that takes two bytes. */
const WIDE = 'ж'

test('the caches take the share of each of as many threads as --threads allows', () => {
  for (let threads = 1; threads <= 64; threads++) {
    const options = appOptions({ store: {} as Store, threads })
    for (const create of [createTokenCache, createListCache]) expect(() => create(options)).not.toThrow()
  }
})

describe.each(COUNTED)('the token cache, with $name', (transport) => {
  test('reads a token once, whatever was asked and written since', async () => {
    await using service = await countReads(transport)
    const { ask, reads, store, token, user } = service

    for (const query of ['?limit=5', '', '?limit=5', '?limit=-1']) await ask(token, query)
    await store.createPlant(user, { id: 1n, name: 'Fern' })
    await store.touchTokens(new Map([[1, Date.now()]]), Date.now())
    expect(await ask(token)).toMatchObject({ status: 200 })

    expect(reads.findToken).toBe(1)
  })

  test('reads a token again after any change of tokens, also by another opening of the store', async () => {
    await using service = await countReads(transport)
    const { ask, reads, store, token } = service
    const other = await service.reopen()

    await ask(token)
    await createToken(store, { user: 'you' })
    expect(await ask(token)).toMatchObject({ status: 200 })
    expect(reads.findToken).toBe(2)
    await createToken(other)
    clock.monotonicMs += OTHERS_SEEN_WITHIN_MS
    await untilKnown(store)
    expect(await ask(token)).toMatchObject({ status: 200 })
    expect(reads.findToken).toBe(3)
    await other.revokeTokens({ userName: 'me' }, Date.now())
    clock.monotonicMs += OTHERS_SEEN_WITHIN_MS
    for (const status of [401, 401]) expect(await ask(token)).toMatchObject({ status: status })
    expect(reads.findToken).toBe(5)
  })

  test('is not used, like the list cache, while the store cannot tell what has changed', async () => {
    const untold = { tokensVersion: () => undefined, hasSameTokens: () => false, plantsVersion: () => undefined }
    await using service = await countReads(transport, { overrideStore: () => untold })
    const { ask, reads, token } = service

    for (let count = 0; count < 3; count++) expect(await ask(token)).toMatchObject({ status: 200 })

    expect(reads).toEqual({ findToken: 3, listPlants: 3 })
  })

  test('holds a token once, in however many ways clients write it, so that others stay', async () => {
    await using service = await countReads(transport)
    const { ask, reads, store, token } = service
    const { text: theirs } = await createToken(store, { user: 'you' })
    const variants = Math.ceil(TOKEN_CACHE_MAX_BYTES / 8192)

    await ask(theirs)
    for (let spaces = 0; spaces < variants; spaces++)
      expect(await ask(' '.repeat(spaces) + token)).toMatchObject({ status: 200 })
    await ask(theirs)

    expect(reads.findToken).toBe(2)
  })

  test('holds as many JWTs beside other tokens as their texts have room in the share of its thread', async () => {
    await using issuer = await startIssuer({ keys: [await makeKey('EdDSA')] })
    await using service = await countReads(transport, {
      jwt: { issuer: issuer.issuer, audience: AUDIENCE },
      app: { threads: THREADS },
    })
    const { ask, reads, token } = service
    const x = 'x'.repeat(5700)
    const askForBytes = async (bytes: number) => {
      for (let sent = 0; sent < bytes; ) {
        const jwt = await issuer.token({ x, jti: crypto.randomUUID() })
        expect(await ask(jwt)).toMatchObject({ status: 200 })
        sent += jwt.length
      }
    }

    await ask(token)
    await askForBytes(TOKEN_CACHE_MAX_BYTES / THREADS / 2)
    await ask(token)
    expect(reads.findToken).toBe(1)
    await askForBytes(TOKEN_CACHE_MAX_BYTES / THREADS)
    await ask(token)
    expect(reads.findToken).toBe(2)
  })

  test('holds no unknown token, and text that cannot be a token is not looked up', async () => {
    await using service = await countReads(transport)
    const { ask, reads, token } = service
    const { text: unknown } = await createToken({
      createTokens: async () => ({ created: 0, firstId: 0, newUsers: [] }),
    })

    for (const text of [unknown, unknown, 'nobody', `${token}x`]) expect(await ask(text)).toMatchObject({ status: 401 })

    expect(reads).toEqual({ findToken: 2, listPlants: 0 })
  })

  test('refuses a token from its expiry on', async () => {
    let nowMs = 0
    await using service = await countReads(transport, { app: { nowMs: () => nowMs } })
    const { ask, store } = service
    const { text } = await createToken(store, { expiresAtMs: 1000 })

    const statuses = []
    for (nowMs of [0, 999, 1000, 1001]) statuses.push((await ask(text)).status)

    expect(statuses).toEqual([200, 200, 401, 401])
  })

  test('reads the user of a JWT again as long as there is none, and then once', async () => {
    await using issuer = await startIssuer()
    let found = 0
    await using service = await countReads(transport, {
      jwt: { issuer: issuer.issuer, audience: AUDIENCE },
      overrideStore: (store) => ({
        async findUser(name) {
          found++
          return store.findUser(name)
        },
      }),
    })
    const token = await issuer.token()
    const counts = []
    for (const id of [0, 0, 1, 0, 0]) {
      if (id > 0) await service.create({ id, name: 'Fern' }, { token })
      await service.ask(token)
      counts.push(found)
    }
    // The create reads the user before it makes it.
    expect(counts).toEqual([1, 2, 4, 4, 4])
  })

  test('refuses a token that was revoked during its look-up, from the next request on', async () => {
    await using service = await countReads(transport, {
      overrideStore: (store) => ({
        async findToken(hash) {
          const found = await store.findToken(hash)
          if (found !== undefined) await store.revokeTokens({ id: found.id }, Date.now())
          return found
        },
      }),
    })
    const { ask, token } = service

    expect([await ask(token), await ask(token)]).toMatchObject([{ status: 200 }, { status: 401 }])
  })

  test('refuses a JWT whose user was blocked during its look-up, from the next request on', async () => {
    await using issuer = await startIssuer()
    await using service = await countReads(transport, {
      jwt: { issuer: issuer.issuer, audience: AUDIENCE },
      overrideStore: (store) => ({
        async findUser(name) {
          const found = await store.findUser(name)
          if (found !== undefined) await store.setUserBlock(name, Date.now())
          return found
        },
      }),
    })
    const token = await issuer.token()
    await service.create({ id: 1, name: 'Fern' }, { token })

    expect([await service.ask(token), await service.ask(token)]).toMatchObject([{ status: 200 }, { status: 401 }])
  })
})

describe.each(COUNTED)('the list cache, with $name', (transport) => {
  test('reads a list once until the plants of its user change', async () => {
    await using service = await countReads(transport)
    const { ask, reads, store, token, user } = service
    const { text: theirs } = await createToken(store, { user: 'you' })
    const you = await service.userIdOf('you')
    const askAll = async () => {
      for (const query of ['?limit=5', '?limit=5&after=0', '?limit=5']) await ask(token, query)
    }

    await askAll()
    await askAll()
    expect(reads.listPlants).toBe(2)
    await store.createPlant(you, { id: 1n, name: 'Fern' })
    await ask(theirs)
    await askAll()
    expect(reads.listPlants).toBe(3)
    await store.createPlant(user, { id: 1n, name: 'Fern' })
    await askAll()
    expect(reads.listPlants).toBe(5)
    // A list without a limit is never cached.
    expect(await readsOf(reads, () => ask(token, ''))).toEqual([1, 1, 1])
  })

  test('reads a list again if a plant was created during the first read', async () => {
    let isFirst = true
    await using service = await countReads(transport, {
      overrideStore: (store) => ({
        async listPlants(user, ...asked) {
          const page = await store.listPlants(user, ...asked)
          if (isFirst) await store.createPlant(user, { id: 1n, name: 'Fern' })
          isFirst = false
          return page
        },
      }),
    })
    const { ask, token } = service

    expect([(await ask(token)).text, (await ask(token)).text]).toEqual(['[]', '[{"name":"Fern"}]'])
  })

  test('reads a list again that its bytes have cut, once the plant behind it is shorter or another one comes between', async () => {
    await using service = await countReads(transport)
    const { ask, store, token, user } = service
    const long = { id: 10n, name: 'x'.repeat(LIST_MAX_BYTES) }
    await store.createPlant(user, { id: 1n, name: 'Fern' })
    await store.createPlant(user, long)

    for (const change of [
      { id: 5n, name: 'Ivy' },
      { id: 10n, name: 'Moss' },
    ]) {
      const before = (await ask(token, '?limit=10')).text
      await store.putPlant(user, change)
      expect((await ask(token, '?limit=10')).text).toBe(`${before.slice(0, -1)},{"name":"${change.name}"}]`)
    }
  })

  test('does not hold a list larger than CACHED_LIST_MAX_BYTES', async () => {
    await using service = await countReads(transport)
    const { ask, reads, store, token, user } = service
    await store.createPlant(user, { id: 1n, name: WIDE.repeat(CACHED_LIST_MAX_BYTES / 2 - 4096) })
    await store.createPlant(user, { id: 2n, name: WIDE.repeat(CACHED_LIST_MAX_BYTES / 2) })

    expect(await readsOf(reads, () => ask(token, '?limit=1'))).toEqual([1, 0, 0])
    expect(await readsOf(reads, () => ask(token, '?limit=1&after=1'))).toEqual([1, 1, 1])
    // The cached list stays.
    expect(await readsOf(reads, () => ask(token, '?limit=1'))).toEqual([0, 0, 0])
  })

  test('holds LISTS_PER_USER_MAX lists of a user, and drops all others for one more', async () => {
    await using service = await countReads(transport)
    const { ask, reads, token } = service
    const askFor = (lists: number) => async () => {
      for (let list = 0; list < lists; list++) await ask(token, `?limit=1&after=${list}`)
    }

    expect(await readsOf(reads, askFor(LISTS_PER_USER_MAX))).toEqual([LISTS_PER_USER_MAX, 0, 0])
    await ask(token, '?limit=2')
    expect(await readsOf(reads, () => ask(token, '?limit=2'))).toEqual([0, 0, 0])
    expect((await readsOf(reads, () => ask(token, '?limit=1&after=0')))[0]).toBe(1)
  })

  test('drops the lists of the user who was idle the longest once all lists take the share of their thread', async () => {
    await using service = await countReads(transport, { app: { threads: THREADS } })
    const { ask, reads, store, token, user } = service
    const bytes = CACHED_LIST_MAX_BYTES - 8192
    await store.createPlant(user, { id: 1n, name: WIDE.repeat(bytes / 2) })
    const others: string[] = []
    while (others.length * LISTS_PER_USER_MAX * bytes < LIST_CACHE_MAX_BYTES / THREADS) {
      const name = `user ${others.length}`
      others.push((await createToken(store, { user: name })).text)
      await store.createPlant(await service.userIdOf(name), { id: 1n, name: WIDE.repeat(bytes / 2) })
    }

    expect(await readsOf(reads, () => ask(token, '?limit=1'))).toEqual([1, 0, 0])
    for (const other of others) {
      for (let list = 0; list < LISTS_PER_USER_MAX; list++) await ask(other, `?limit=1&list=${list}`)
    }

    const last = others.at(-1) ?? ''
    expect(await readsOf(reads, () => ask(last, '?limit=1&list=0'))).toEqual([0, 0, 0])
    expect(await readsOf(reads, () => ask(token, '?limit=1'))).toEqual([1, 0, 0])
  })
})

/** Resolves once the store knows its versions. It asks the thread that writes for them. */
const untilKnown = (store: Store) => until('the store knows its versions', () => store.tokensVersion())

/** A service with user `me` whose reads of the store are counted. */
async function countReads(transport: Transport, { overrideStore, ...options }: ServiceOptions = {}) {
  const reads = { findToken: 0, listPlants: 0 }
  const counted = (store: Store): Partial<Store> => {
    const overrides = overrideStore?.(store)
    const used = { ...store, ...overrides }
    return {
      ...overrides,
      findToken(...asked) {
        reads.findToken++
        return used.findToken(...asked)
      },
      listPlants(...asked) {
        reads.listPlants++
        return used.listPlants(...asked)
      },
    }
  }
  const service = await startService(transport, { ...options, overrideStore: counted })
  const ask = (token: string, query = '?limit=5') => service.list(query, { token })
  return { ...service, reads, ask, user: await service.userIdOf('me') }
}

/** Asks three times. Returns how many pages each time read from the store. */
async function readsOf(reads: { listPlants: number }, ask: () => Promise<unknown>): Promise<number[]> {
  const counts: number[] = []
  while (counts.length < 3) {
    const before = reads.listPlants
    await ask()
    counts.push(reads.listPlants - before)
  }
  return counts
}
