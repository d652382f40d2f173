import { describe, expect, test } from 'bun:test'
import type { PlantCondition } from '../../../src/domain/store.ts'
import { type OpenOptions, STORE_DEADLINES } from '../../../src/store/database.ts'
import { POSTGRES_SERVER, runScript, serverUrl } from '../../support/postgres.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { listAll, outcomesOf, rejectionOf } from '../fixtures.ts'
import { openDatabase } from './open-database.ts'

/** Marks the statement of a group: a value that it carries. */
const MARK = 'marked-plant'

describe.skipIf(lacks(POSTGRES_SERVER))('if the connection is lost after the commit of a group', () => {
  test('each write still gets its own result', async () => {
    await using opened = await openBehindProxy()
    const { store, user } = opened
    await store.createPlant(user, { id: 1n, name: 'Fern' })

    const createCuts = opened.proxy.loseAnswerTo(MARK)
    const creates = await outcomesOf([
      store.createPlant(user, { id: 1n, name: 'Ivy' }),
      store.createPlant(user, { id: 2n, name: MARK }),
      store.createPlant(user + 7, { id: 3n, name: 'Moss' }),
    ])
    const putCuts = opened.proxy.loseAnswerTo(MARK)
    const put = (id: bigint, name: string, condition?: PlantCondition) =>
      store.putPlant(user, { id, name }, condition).catch(({ kind }) => kind)
    const puts = await Promise.all([
      put(1n, 'Ivy'),
      put(4n, MARK),
      put(1n, 'Reed'),
      put(5n, 'Ivy', 'some'),
      put(4n, MARK),
    ])
    const deleteCuts = opened.proxy.loseAnswerTo('')
    const deletes = await outcomesOf([store.deletePlant(user, 1n), store.deletePlant(user, 8n)])

    expect([createCuts(), putCuts(), deleteCuts()]).toEqual([1, 1, 1])
    expect(creates).toEqual(['plant_exists', 'done', 'token_invalid'])
    expect(puts).toEqual([false, true, false, 'precondition_failed', false])
    expect(deletes).toEqual(['done', 'plant_not_found'])
    expect(await listAll(store, user)).toEqual([2n, 4n].map((id) => ({ id, name: MARK })))
  })

  test('and the database has become read-only, the outcome is reported as unknown', async () => {
    await using opened = await openBehindProxy()
    const { store, user, server, name } = opened
    const cuts = opened.proxy.loseAnswerTo(MARK)
    // New connections are read-only, like those to a standby. Present ones are not.
    await runScript(server, `alter database ${name} set default_transaction_read_only = on`)

    const created = await rejectionOf(store.createPlant(user, { id: 1n, name: MARK }))

    expect(cuts()).toBe(1)
    expect(created).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: true })
    expect(await listAll(store, user)).toEqual([{ id: 1n, name: MARK }])
  })
})

describe.skipIf(lacks(POSTGRES_SERVER))('if the connection is lost before the server has read a group', () => {
  test('the group is written again, and the late statement does nothing', async () => {
    await using opened = await openBehindProxy()
    const { store, user, proxy } = opened
    let cuts = 0
    proxy.decide((from, bytes) => {
      if (from === 'server' || cuts > 0 || !bytes.includes(MARK)) return 'pass'
      cuts++
      return 'cut'
    })

    await store.createPlant(user, { id: 1n, name: MARK })
    await store.deletePlant(user, 1n)
    await opened.releaseGroup()

    expect(cuts).toBe(1)
    expect(await listAll(store, user)).toEqual([])
  })

  test('and the server stays away, the outcome is reported as unknown; later writes succeed', async () => {
    await using opened = await openBehindProxy()
    const { store, user, proxy } = opened
    let isAway = false
    proxy.decide((from, bytes) => {
      isAway ||= from === 'client' && bytes.includes(MARK)
      return isAway ? 'cut' : 'pass'
    })

    const created = await rejectionOf(store.createPlant(user, { id: 1n, name: MARK }))

    expect(created).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: true })
    proxy.decide(() => 'pass')
    await store.createPlant(user, { id: 2n, name: 'Ivy' })
    await opened.releaseGroup()
    expect(await listAll(store, user)).toEqual([{ id: 2n, name: 'Ivy' }])
  })

  test('and again before a new writer opens, the late statement finds its writer closed', async () => {
    await using opened = await openBehindProxy({ deadlines: STORE_DEADLINES })
    const { store, user, proxy } = opened
    let isCut = false
    let openings = 0
    proxy.decide((from, bytes) => {
      if (from === 'server') return 'pass'
      if (!isCut && bytes.includes(MARK)) {
        isCut = true
        return 'cut'
      }
      // A transaction opens the next writer and deletes the row of the lost one. It must not begin.
      if (!isCut || !bytes.includes('BEGIN')) return 'pass'
      openings++
      return 'hold'
    })

    const created = await rejectionOf(store.createPlant(user, { id: 1n, name: MARK }))

    // Either the time of the write or the wait in the queue ends first. The plant is not stored in both cases.
    expect(created).toMatchObject({ kind: expect.stringMatching(/^store_(?:failed|busy)$/), outcomeIsUnknown: false })
    expect(openings).toBeGreaterThan(0)
    expect(await opened.number('select count(*) from plantstore.writers where is_closed')).toBe(1)
    await opened.releaseGroup()
    expect(await listAll(store, user)).toEqual([])
    await store.createPlant(user, { id: 1n, name: 'Ivy' })
  })
})

describe.skipIf(lacks(POSTGRES_SERVER))('if the ledger has changed when the connection is lost', () => {
  const moved = (groups: number) => `update plantstore.writers set groups = groups + ${groups}`

  test('because a standby that was behind took over, the group is written there, without the result of an older one', async () => {
    await using opened = await openDatabase()
    const { store, user } = opened
    const create = () => store.createPlant(user, { id: 1n, name: 'Fern' })
    const remove = () => store.deletePlant(user, 1n)
    expect(await outcomesOf([create(), create()])).toEqual(['done', 'plant_exists'])
    expect(await outcomesOf([create(), remove(), remove()])).toEqual(['plant_exists', 'done', 'plant_not_found'])

    await opened.loseConnectionOf(create, moved(-2))
    const stored = await listAll(store, user)
    await opened.loseConnectionOf(remove, moved(-2))

    expect(stored).toEqual([{ id: 1n, name: 'Fern' }])
    expect(await listAll(store, user)).toEqual([])
  })

  test('and has more groups than the writer knows, the outcome is unknown', async () => {
    await using opened = await openDatabase()
    const { store, user } = opened
    const create = (id: bigint) => store.createPlant(user, { id, name: 'Fern' })
    await create(1n)

    const created = await opened.loseConnectionOf(() => rejectionOf(create(2n)), moved(2))
    expect(created).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: true })
  })
})

/** A store behind a proxy. Its writers have their rows, and its statements are prepared. */
async function openBehindProxy(options: Pick<OpenOptions, 'deadlines'> = {}) {
  const proxy = startPostgresProxy(await serverUrl())
  const { decide, release } = proxy
  const opened = await openDatabase({ by: proxy.by, ...options })
  await opened.store.createPlant(opened.user, { id: 0n, name: 'Fern' })
  await opened.store.deletePlant(opened.user, 0n)
  return {
    ...opened,
    proxy,
    /** Passes on the held bytes. Resolves when the server has answered the statement of the group that was among them. */
    async releaseGroup() {
      let isAnswered = false
      decide((from, bytes) => {
        if (from === 'server' && /UPDATE [01]\0/.test(bytes.toString('latin1'))) isAnswered = true
        return 'pass'
      })
      release()
      await until('the group is answered', () => isAnswered)
    },
    async [Symbol.asyncDispose]() {
      decide(() => 'pass')
      await opened[Symbol.asyncDispose]()
      proxy[Symbol.dispose]()
    },
  }
}
