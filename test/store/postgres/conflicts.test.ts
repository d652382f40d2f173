import { describe, expect, test } from 'bun:test'
import type { PlantCondition, Store } from '../../../src/domain/store.ts'
import type { UserId } from '../../../src/domain/token.ts'
import { STORE_DEADLINES } from '../../../src/store/database.ts'
import { POSTGRES_SERVER, runUncommitted, untilWaiting } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { createUser, listAll, listIds, newToken, outcomesOf } from '../fixtures.ts'
import { rejectionOf } from '../rejection.ts'
import { openDatabase } from './open-database.ts'

/** A trigger that refuses the first writes of a table with an error. */
const refuseFirst = (table: string, state: string, times: number) => `
  create sequence public.refusals_${table};
  create function public.refuse_${table}() returns trigger language plpgsql as $$
  begin
    if nextval('public.refusals_${table}') <= ${times} then raise exception 'refused' using errcode = '${state}'; end if;
    return null;
  end $$;
  create trigger refusing before insert or update or delete on plantstore.${table} for each statement execute function public.refuse_${table}();`

describe.skipIf(lacks(POSTGRES_SERVER))('a PostgreSQL database that refuses writes', () => {
  test.each(['40001', '40P01'])('because of conflicts %s gets them again until they succeed', async (state) => {
    await using opened = await openDatabase()
    const { store, user } = opened
    await store.createPlant(user, { id: 7n, name: 'Fern' })
    for (const table of ['plants', 'tokens']) await opened.run(refuseFirst(table, state, 5))

    const ids = Array.from({ length: 50 }, (_, id) => BigInt(id + 10))
    await Promise.all([...ids.map((id) => store.createPlant(user, { id, name: 'Ivy' })), store.deletePlant(user, 7n)])

    expect(await listIds(store, user)).toEqual(ids)
    expect(await store.createTokens([newToken('you')])).toMatchObject({ newUsers: ['you'] })
    for (const table of ['plants', 'tokens']) {
      expect(await opened.number(`select last_value from public.refusals_${table}`)).toBeGreaterThan(5)
    }
  })

  test('because of lasting conflicts makes them fail with store_busy, and stores nothing later', async () => {
    await using opened = await openDatabase({ deadlines: STORE_DEADLINES })
    const { store, user } = opened
    await opened.run(refuseFirst('plants', '40001', 1_000_000))

    const refused = await rejectionOf(store.createPlant(user, { id: 1n, name: 'Fern' }))

    expect(refused).toMatchObject({ kind: 'store_busy', outcomeIsUnknown: false })
    await opened.run('drop trigger refusing on plantstore.plants')
    await store.createPlant(user, { id: 2n, name: 'Ivy' })
    expect(await listAll(store, user)).toEqual([{ id: 2n, name: 'Ivy' }])
  })

  test.each([
    ['53100', 'store_full'],
    ['25006', 'store_full'],
    ['58030', 'store_failed'],
    ['53200', 'store_busy'],
  ])('with SQLSTATE %s makes them fail with %s, and stores nothing', async (state, kind) => {
    await using opened = await openDatabase()
    const { store, user } = opened
    await opened.run(refuseFirst('plants', state, 1))

    const refused = await rejectionOf(store.createPlant(user, { id: 1n, name: 'Fern' }))

    expect(refused).toMatchObject({ kind, outcomeIsUnknown: false })
    await store.createPlant(user, { id: 1n, name: 'Ivy' })
    expect(await listAll(store, user)).toEqual([{ id: 1n, name: 'Ivy' }])
  })
})

type Write = (store: Store, user: UserId) => Promise<unknown>
const WRITES: readonly (readonly [name: string, quotaPlants: number | undefined, write: Write])[] = [
  ['creates within a quota', 2, (store, user) => store.createPlant(user, { id: 2n, name: 'Ivy' })],
  ['puts', undefined, (store, user) => store.putPlant(user, { id: 1n, name: 'Ivy' })],
  ['deletes', undefined, (store, user) => store.deletePlant(user, 1n)],
]

describe.skipIf(lacks(POSTGRES_SERVER))('a group of a store that waits for another process', () => {
  /** Users `me` and `you`, who have plant 1. */
  async function openWithTwo(options: { readonly quotaPlants?: number | undefined } = {}) {
    const opened = await openDatabase(options)
    const users = [opened.user, await createUser(opened.store, 'you')] as const
    for (const user of users) await opened.store.createPlant(user, { id: 1n, name: 'Fern' })
    return { ...opened, users }
  }

  test.each(WRITES)('locks users in the order of their ids for %s', async (_, quotaPlants, write) => {
    await using opened = await openWithTwo({ quotaPlants })
    const { store, url, run, users } = opened
    const [me, you] = users
    // Writes the first user again, behind the second one. PostgreSQL reads a table as it is if it knows that there are two rows.
    for (const blockedAtMs of [1, undefined]) await store.setUserBlock('me', blockedAtMs)
    await run('analyze plantstore.users')
    const locking = await runUncommitted(url, `select 1 from plantstore.users where id = ${me} for update`)

    const outcomes = outcomesOf([write(store, you), write(store, me)])
    await untilWaiting(url, 1)
    await run(`select 1 from plantstore.users where id = ${you} for update nowait`)
    await locking.release()

    expect(await outcomes).toEqual(['done', 'done'])
  })

  test.each([
    ['ids of a user', [1, 3, 1, 2]],
    ['users', [2, 2, 1, 2]],
  ] as const)('creates its plants in the order of the %s', async (_, [user, id, firstUser, firstId]) => {
    await using opened = await openWithTwo()
    const { store, url, run, users } = opened
    const insert = (owner: number, plant: number) =>
      `insert into plantstore.plants (user_id, id, name) values (${users[owner - 1]}, ${plant}, 'Moss')`
    const create = (owner: number, plant: number) =>
      store.createPlant(users[owner - 1] ?? 0, { id: BigInt(plant), name: 'Ivy' })
    const inserting = await runUncommitted(url, insert(firstUser, firstId))

    const outcomes = outcomesOf([create(user, id), create(firstUser, firstId)])
    await untilWaiting(url, 1)
    // This would wait for the group if it had created the later plant first.
    await run(`set lock_timeout = '500ms'; ${insert(user, id)}`)
    await inserting.release()

    expect(await outcomes).toEqual(['plant_exists', 'plant_exists'])
  })
})

test.skipIf(lacks(POSTGRES_SERVER))(
  'two stores that write the same plants in opposite orders give each write its own result',
  async () => {
    await using opened = await openDatabase()
    const { store, user } = opened
    const other = await opened.open()
    const ids = Array.from({ length: 300 }, (_, id) => BigInt(id))

    const creates = await outcomesOf([
      ...ids.map((id) => store.createPlant(user, { id, name: 'Fern' })),
      ...ids.toReversed().map((id) => other.createPlant(user, { id, name: 'Ivy' })),
    ])
    const puts = async (condition?: PlantCondition) => {
      const both = [ids.map((id) => ({ id, name: 'Moss' })), ids.toReversed().map((id) => ({ id, name: 'Reed' }))]
      const sides = [store, other].map((side, index) =>
        both[index]?.map((plant) => side.putPlant(user, plant, condition)),
      )
      return (await Promise.all(sides.flatMap((side) => side ?? []))).toSorted()
    }
    const replaced = []
    for (let round = 0; round < 30; round++) replaced.push(await puts(), await puts('some'))
    for (let round = 0; round < 30; round++) {
      const deletes = ids.toReversed().map((id) => other.deletePlant(user, id))
      await outcomesOf([...ids.map((id) => store.putPlant(user, { id, name: 'Sage' })), ...deletes])
    }
    await puts()
    const deletes = await outcomesOf([
      ...ids.map((id) => store.deletePlant(user, id)),
      ...ids.toReversed().map((id) => other.deletePlant(user, id)),
    ])

    const halves = (refusal: string) => [...ids.map(() => 'done'), ...ids.map(() => refusal)]
    expect(creates.toSorted()).toEqual(halves('plant_exists'))
    expect(new Set(replaced.flat())).toEqual(new Set([false]))
    expect(deletes.toSorted()).toEqual(halves('plant_not_found'))
    // Now the puts make the plants.
    expect(await puts()).toEqual([...ids.map(() => false), ...ids.map(() => true)])
    // A server counts a deadlock when it has ended a transaction for it.
    expect(await opened.number('select deadlocks from pg_stat_database where datname = current_database()')).toBe(0)
  },
)
