import { describe, expect, test } from 'bun:test'
import { OTHERS_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import { CACHED_LIST_MAX_BYTES, LISTS_PER_USER_MAX } from '../../src/http/lists/list-cache.ts'
import { runElsewhere } from '../support/elsewhere.ts'
import { type Asked, expectedList, type Model, queryOf } from './support/list-model.ts'
import { type Answer, type Service, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

/** Lists with and without plants behind them, and one that is never cached. */
const ASKED: readonly Asked[] = [
  { limit: 0 },
  { limit: 1 },
  { limit: 2 },
  { limit: 3, after: 0n },
  { limit: 2, after: 5n },
  { limit: 100 },
  {},
]

describe.each(TRANSPORTS)('a cached list, $name', (transport) => {
  test('is the same until a plant changes, and another one after every change', async () => {
    await using service = await startService(transport)
    const plants = keep(service)

    await plants.expectLists()
    // Before the listed plants, between and behind them, and all the way back.
    for (const id of [5n, 1n, 9n, 3n, -2n, 20n, 7n]) {
      await plants.create(id)
      await plants.expectLists()
    }
    for (const id of [20n, 3n, -2n, 9n, 7n, 5n, 1n]) {
      await plants.delete(id)
      await plants.expectLists()
    }
    await plants.create(1n, 'another')
    await plants.expectLists()
  })

  test('shows changes made with another token of the same user', async () => {
    await using service = await startService(transport)
    const { text: other } = await service.createToken()
    const mine = keep(service)

    await mine.create(1n)
    await mine.expectLists()
    await mine.create(2n, 'by the other', other)
    await mine.expectLists()
    await mine.expectLists(other)
    await mine.delete(1n, other)
    await mine.expectLists()
    await mine.create(3n)
    await mine.expectLists(other)
  })

  test('shows changes made by other processes', async () => {
    await using service = await startService(transport)
    const { database } = service
    const [token] = await service.store.listTokens('me')
    const user = token?.userId ?? 0
    const mine = keep(service)
    await mine.create(1n)
    await mine.expectLists()

    await runElsewhere(database, `await store.createPlant(${user}, { id: 2n, name: 'from elsewhere' })`)
    await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
    mine.model.set(2n, 'from elsewhere')
    await mine.expectLists()
    await runElsewhere(database, `await store.deletePlant(${user}, 1n)`)
    await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
    mine.model.delete(1n)
    await mine.expectLists()
  })

  test('belongs to its user, also if another user asked for the same URL', async () => {
    await using service = await startService(transport)
    const { text: your } = await service.createToken({ user: 'you' })
    const mine = keep(service)
    const yours = keep(service, your)

    for (const id of [1n, 2n, 3n]) {
      await mine.create(id, `mine ${id}`)
      await mine.expectLists()
      await yours.expectLists()
      await yours.create(id, `yours ${id}`)
      await yours.expectLists()
      await mine.expectLists()
    }
    await mine.delete(2n)
    await yours.expectLists()
    await mine.expectLists()
  })

  test('belongs to its URL, also if another URL is similar', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3]) await service.create({ id, name: `${id}` })
    const names: readonly (readonly [query: string, names: string | number])[] = [
      ['?limit=2', '1,2'],
      ['?limit=2&', '1,2'],
      ['?limit=2&after=1', '2,3'],
      ['?after=1&limit=2', '2,3'],
      ['?limit=2&after=2', '3'],
      ['?limit=20', '1,2,3'],
      ['?limit=02', 40003],
      ['?limit=2&limit=2', 40003],
      ['?limit=%32', '1,2'],
      ['?%6cimit=2', '1,2'],
      ['?LIMIT=2', '1,2,3'],
      ['?limit=2&x=?limit=1', '1,2'],
      ['?x=&limit=1', '1'],
      ['?limit=1', '1'],
      ['?limit=1&after=-1', '1'],
      ['?limit=1&after=1', '2'],
      ['?limit=1&after=', 40003],
    ]

    for (let round = 0; round < 3; round++) {
      for (const [query, expected] of names) {
        expect([round, query, said(await service.list(query))]).toEqual([round, query, expected])
      }
      // The same query on another path is no list.
      expect((await service.request('GET', '/plants/?limit=2')).status).toBe(404)
      expect((await service.request('GET', '/plants/1?limit=2')).status).toBe(405)
    }
  })

  test('is right when it is too long for the cache', async () => {
    await using service = await startService(transport, { maxBodyBytes: 2 * CACHED_LIST_MAX_BYTES })
    const large = 'x'.repeat(CACHED_LIST_MAX_BYTES)
    await service.create({ id: 1, name: large })

    for (const id of [2, 3, 4]) {
      for (let round = 0; round < 2; round++) {
        expect((await service.list('?limit=9')).body).toHaveLength(id - 1)
        expect((await service.list('?limit=1')).body).toEqual([{ name: large }])
      }
      await service.create({ id, name: 'small' })
    }
  })

  test('is right when one user has more lists than the cache holds', async () => {
    await using service = await startService(transport)
    const plants = keep(service)
    for (const id of [1n, 2n, 3n]) await plants.create(id)
    const many = Array.from({ length: 2 * LISTS_PER_USER_MAX + 1 }, (_, after) => ({
      limit: 2,
      after: BigInt(-after),
    }))

    for (const id of [4n, 0n, -1n]) {
      await plants.expectLists(undefined, many)
      await plants.create(id)
    }
    await plants.expectLists(undefined, many)
  })
})

/** The names in a list, or the code of its error. */
const said = ({ body }: Answer): string | number =>
  Array.isArray(body) ? body.map((plant: { name: string }) => plant.name).join() : body.error

/** Changes plants of one user over HTTP, and keeps a model of them to compare every list with. */
function keep(service: Service, own: string = service.token) {
  const model: Model = new Map()
  return {
    model,
    async create(id: bigint, name = `plant ${id}`, token = own) {
      expect((await service.create({ id: Number(id), name }, { token })).status).toBe(200)
      model.set(id, name)
    },
    async delete(id: bigint, token = own) {
      expect((await service.delete(id, { token })).status).toBe(204)
      model.delete(id)
    },
    /** Asks for each list twice: the second answer may come from the cache. */
    async expectLists(token = own, lists = ASKED) {
      for (const asked of [...lists, ...lists]) {
        const answer = await service.list(queryOf(asked), { token })
        const names = answer.body.map((plant: { name: string }) => plant.name)
        const { status, headers } = answer
        expect([asked, status, { shown: names, link: headers.get('link') }]).toEqual([
          asked,
          200,
          expectedList(model, asked),
        ])
      }
    },
  }
}
