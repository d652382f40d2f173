import { describe, expect, test } from 'bun:test'
import { openStore } from '../../../src/store/open.ts'
import { administer, makeDatabase, POSTGRES_SERVER } from '../../support/postgres.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { lacks } from '../../support/requirement.ts'
import { type Decide, startProxy } from '../../support/tcp-proxy.ts'
import { createUser, listAll } from '../fixtures.ts'

/** Statements that write a group: prepared once, so that later ones are known by the values that they carry. */
const MARK = 'marked-plant'
const has = (bytes: Uint8Array) => Buffer.from(bytes).includes(MARK)

describe.skipIf(lacks(POSTGRES_SERVER))('a connection that is lost while plants are written', () => {
  test('after the commit: what was stored is answered with success, once, and conflicts with nothing', async () => {
    await using opened = await openBehindProxy()
    const { store, proxy, user } = opened
    const { cuts, decide } = cutAnswer(MARK)
    proxy.decide(decide)

    await Promise.all([
      store.createPlant(user, { id: 1n, name: MARK }),
      store.createPlant(user, { id: 2n, name: 'Ivy' }),
    ])

    expect(cuts.count).toBe(1)
    expect(await listAll(store, user)).toEqual([
      { id: 1n, name: MARK },
      { id: 2n, name: 'Ivy' },
    ])
  })

  test('after the commit: each is still told what became of its own', async () => {
    await using opened = await openBehindProxy()
    const { store, proxy, user } = opened
    await store.createPlant(user, { id: 1n, name: 'Fern' })
    const { cuts, decide } = cutAnswer(MARK)
    proxy.decide(decide)

    const outcomes = await outcomesOf([
      store.createPlant(user, { id: 1n, name: 'Ivy' }),
      store.createPlant(user, { id: 2n, name: MARK }),
      store.createPlant(user + 7, { id: 3n, name: 'Moss' }),
    ])

    expect(cuts.count).toBe(1)
    expect(outcomes).toEqual(['plant_exists', 'done', 'token_invalid'])
  })

  test('before the server had it: it is stored all the same, and the statement that comes late does nothing', async () => {
    await using opened = await openBehindProxy()
    const { store, proxy, user } = opened
    let cut = 0
    proxy.decide((from, bytes) => {
      if (from === 'client' && has(bytes) && cut === 0) {
        cut++
        return 'cut'
      }
      return 'pass'
    })

    await store.createPlant(user, { id: 1n, name: MARK })
    await store.deletePlant(user, 1n)
    expect(cut).toBe(1)
    // The server reads it now, from a connection whose client has gone long since.
    await releaseToItsEnd(proxy)

    expect(await listAll(store, user)).toEqual([])
  })

  test('of a delete: what was deleted is answered with success, and what was not there is not', async () => {
    await using opened = await openBehindProxy()
    const { store, proxy, user } = opened
    await store.createPlant(user, { id: 7n, name: 'Fern' })
    const { cuts, decide } = cutAnswer('')
    proxy.decide(decide)

    const outcomes = await outcomesOf([store.deletePlant(user, 7n), store.deletePlant(user, 8n)])

    expect(cuts.count).toBe(1)
    expect(outcomes).toEqual(['done', 'plant_not_found'])
    expect(await listAll(store, user)).toEqual([])
  })

  test('and does not come back: nobody is told that it is stored or that it is not', async () => {
    await using opened = await openBehindProxy()
    const { store, proxy, user } = opened
    let isDown = false
    proxy.decide((from, bytes) => {
      if (from === 'client' && has(bytes)) isDown = true
      return isDown ? 'cut' : 'pass'
    })

    const created = await rejectionOf(store.createPlant(user, { id: 1n, name: MARK }))

    expect(created).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: true })
    // What comes now is known not to be stored: it was never sent.
    proxy.decide(() => 'pass')
    await store.createPlant(user, { id: 2n, name: 'Ivy' })
    await releaseToItsEnd(proxy)
    expect(await listAll(store, user)).toEqual([{ id: 2n, name: 'Ivy' }])
  })

  test('and is lost again after it was learnt that nothing was stored: the statement that comes late finds its writer closed', async () => {
    await using opened = await openBehindProxy()
    const { store, proxy, user, database } = opened
    let isCut = false
    let openings = 0
    proxy.decide((from, bytes) => {
      if (from === 'server') return 'pass'
      if (!isCut && has(bytes)) {
        isCut = true
        return 'cut'
      }
      // The next writer is opened in a transaction: the row of the lost one stays until there is one.
      if (!isCut || !Buffer.from(bytes).includes('BEGIN')) return 'pass'
      openings++
      return 'hold'
    })

    const created = await rejectionOf(store.createPlant(user, { id: 1n, name: MARK }))

    // By whether the time of the write or that of its look is over first: it was not stored in either case.
    expect(created).toMatchObject({ kind: expect.stringMatching(/^store_(?:failed|busy)$/), outcomeIsUnknown: false })
    expect(openings).toBeGreaterThan(0)
    const closed = await administer(database.url, (sql) =>
      sql.unsafe('select is_closed from plantstore.writers where is_closed').values(),
    )
    expect(closed.length).toBe(1)
    await releaseToItsEnd(proxy)
    expect(await listAll(store, user)).toEqual([])
    await store.createPlant(user, { id: 1n, name: 'Ivy' })
  })

  test('and comes back to a database that takes no writes: its refusal is not that of what was stored', async () => {
    await using opened = await openBehindProxy()
    const { store, proxy, user, database } = opened
    const { cuts, decide } = cutAnswer(MARK)
    proxy.decide(decide)
    // Of connections that come, like those to a standby: those that there are do not notice.
    await administer(database.server, (sql) =>
      sql.unsafe(`alter database ${database.name} set default_transaction_read_only = on`).simple(),
    )

    const created = await rejectionOf(store.createPlant(user, { id: 1n, name: MARK }))

    expect(cuts.count).toBe(1)
    expect(created).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: true })
    expect(await listAll(store, user)).toEqual([{ id: 1n, name: MARK }])
  })
})

/** A store behind a proxy, with user `me`, that has written already. */
async function openBehindProxy() {
  const database = await makeDatabase()
  const proxy = startProxy(database.url)
  const store = await openStore(proxy.url, (error) => {
    throw error
  })
  const user = await createUser(store, 'me')
  // The writers have their rows, and the statements are prepared.
  await store.createPlant(user, { id: 0n, name: 'Fern' })
  await store.deletePlant(user, 0n)
  return {
    store,
    proxy,
    user,
    database,
    async [Symbol.asyncDispose]() {
      proxy.decide(() => 'pass')
      await store.close()
      proxy[Symbol.dispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/**
 * Passes on what was held, with a statement that writes a group among it. Resolves when the server has said of that one what
 * it has written: of all that can be held besides, like the begin of a connection, nothing is answered so.
 */
async function releaseToItsEnd(proxy: ReturnType<typeof startProxy>): Promise<void> {
  let isAnswered = false
  proxy.decide((from, bytes) => {
    if (from === 'server' && /UPDATE [01]\0/.test(Buffer.from(bytes).toString('latin1'))) isAnswered = true
    return 'pass'
  })
  proxy.release()
  while (!isAnswered) await Bun.sleep(5)
}

/** Cuts the connection once, when the server answers what has a text in it; any text has the empty one. */
function cutAnswer(text: string) {
  const cuts = { count: 0 }
  let isSent = false
  const decide: Decide = (from, bytes) => {
    if (from === 'client' && Buffer.from(bytes).includes(text)) isSent = true
    if (from === 'client' || !isSent || cuts.count > 0) return 'pass'
    cuts.count++
    return 'cut'
  }
  return { cuts, decide }
}

const outcomesOf = async (writes: readonly Promise<unknown>[]): Promise<string[]> =>
  (await Promise.allSettled(writes)).map((result) => (result.status === 'fulfilled' ? 'done' : result.reason.kind))
