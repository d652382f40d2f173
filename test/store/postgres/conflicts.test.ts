import { describe, expect, test } from 'bun:test'
import { openStore } from '../../../src/store/open.ts'
import { administer, makeDatabase, POSTGRES_SERVER } from '../../support/postgres.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { lacks } from '../../support/requirement.ts'
import { createUser, listAll, listIds, newToken } from '../fixtures.ts'

/** A function and a trigger that refuse the first writes of a table with an error. */
const refuseFirst = (table: string, state: string, times: number) => `
  create sequence public.refusals;
  create function public.refuse() returns trigger language plpgsql as $$
  begin
    if nextval('public.refusals') <= ${times} then raise exception 'refused' using errcode = '${state}'; end if;
    return null;
  end $$;
  create trigger refusing before insert or update or delete on plantstore.${table} for each statement execute function public.refuse();`

describe.skipIf(lacks(POSTGRES_SERVER))('writes that are in the way of others', () => {
  test.each(['40001', '40P01'])('are repeated after %s until they are done, and done once', async (state) => {
    await using opened = await openUsed()
    const { store, user } = opened
    await store.createPlant(user, { id: 7n, name: 'Fern' })
    await opened.run(refuseFirst('plants', state, 5))

    const ids = Array.from({ length: 50 }, (_, id) => BigInt(id + 10))
    await Promise.all([...ids.map((id) => store.createPlant(user, { id, name: 'Ivy' })), store.deletePlant(user, 7n)])

    expect(await listIds(store, user)).toEqual(ids)
    expect(await opened.refusals()).toBeGreaterThan(5)
  })

  test('are refused with store_busy where that lasts, and are not stored later', async () => {
    await using opened = await openUsed()
    const { store, user } = opened
    await opened.run(refuseFirst('plants', '40001', 1_000_000))

    const refused = await rejectionOf(store.createPlant(user, { id: 1n, name: 'Fern' }))

    expect(refused).toMatchObject({ kind: 'store_busy', outcomeIsUnknown: false })
    await opened.run('drop trigger refusing on plantstore.plants')
    await store.createPlant(user, { id: 2n, name: 'Ivy' })
    expect(await listAll(store, user)).toEqual([{ id: 2n, name: 'Ivy' }])
  })

  test('of tokens are repeated as well', async () => {
    await using opened = await openUsed()
    await opened.run(refuseFirst('tokens', '40001', 3))

    expect(await opened.store.createToken(newToken('you'))).toMatchObject({ userIsNew: true })

    expect((await opened.store.listTokens('you')).length).toBe(1)
    expect(await opened.refusals()).toBeGreaterThan(3)
  })

  test.each([
    ['53100', 'store_full'],
    ['25006', 'store_full'],
    ['58030', 'store_failed'],
    ['53200', 'store_busy'],
  ])('and an error %s is %s: nothing was stored', async (state, kind) => {
    await using opened = await openUsed()
    const { store, user } = opened
    await opened.run(refuseFirst('plants', state, 1))

    expect(await rejectionOf(store.createPlant(user, { id: 1n, name: 'Fern' }))).toMatchObject({
      kind,
      outcomeIsUnknown: false,
    })

    await store.createPlant(user, { id: 1n, name: 'Ivy' })
    expect(await listAll(store, user)).toEqual([{ id: 1n, name: 'Ivy' }])
  })

  test('of the same plants from two processes, in whatever order, are each done or refused', async () => {
    await using opened = await openUsed()
    const { store, user } = opened
    const other = await opened.reopen()
    const ids = Array.from({ length: 300 }, (_, id) => BigInt(id))

    const outcomes = await Promise.allSettled([
      ...ids.map((id) => store.createPlant(user, { id, name: 'Fern' })),
      ...ids.toReversed().map((id) => other.createPlant(user, { id, name: 'Ivy' })),
    ])
    const deletes = await Promise.allSettled([
      ...ids.map((id) => store.deletePlant(user, id)),
      ...ids.toReversed().map((id) => other.deletePlant(user, id)),
    ])

    const done = (results: readonly PromiseSettledResult<void>[]) =>
      results.filter(({ status }) => status === 'fulfilled')
    const kinds = (results: readonly PromiseSettledResult<void>[]) =>
      new Set(results.flatMap((result) => (result.status === 'rejected' ? [result.reason.kind] : [])))
    expect([done(outcomes).length, kinds(outcomes)]).toEqual([300, new Set(['plant_exists'])])
    expect([done(deletes).length, kinds(deletes)]).toEqual([300, new Set(['plant_not_found'])])
  })
})

/** A store with user `me` that has written, and another way to its database. */
async function openUsed() {
  const database = await makeDatabase()
  const open = () =>
    openStore(database.url, (error) => {
      throw error
    })
  const opened = [await open()]
  const [store] = opened
  if (store === undefined) throw new Error('unreachable')
  const user = await createUser(store, 'me')
  return {
    store,
    user,
    async reopen() {
      const other = await open()
      opened.push(other)
      return other
    },
    run: (script: string) => administer(database.url, async (sql) => void (await sql.unsafe(script).simple())),
    /** How often the trigger was asked. */
    refusals: () =>
      administer(database.url, async (sql) =>
        Number((await sql.unsafe('select last_value from public.refusals').values())[0]?.[0]),
      ),
    async [Symbol.asyncDispose]() {
      for (const each of opened) await each.close()
      await database[Symbol.asyncDispose]()
    },
  }
}
