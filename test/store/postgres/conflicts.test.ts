import { describe, expect, test } from 'bun:test'
import type { PlantCondition, Store } from '../../../src/domain/store.ts'
import type { UserId } from '../../../src/domain/token.ts'
import { STORE_DEADLINES } from '../../../src/store/database.ts'
import { APPLICATION_NAME, RENEW_MIN_MS } from '../../../src/store/postgres/driver.ts'
import {
  administer,
  lockTables,
  POSTGRES_SERVER,
  runScript,
  runUncommitted,
  untilWaiting,
} from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { SLACK_MS } from '../../support/slack.ts'
import { until } from '../../support/until.ts'
import { createUser, listAll, listIds, newToken, outcomesOf, rejectionOf } from '../fixtures.ts'
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

const UNPREPARED = 'Prepared statements get lost, nothing was stored: behind a pooler, use --database-prepare false.'

describe.skipIf(lacks(POSTGRES_SERVER))('a PostgreSQL database that refuses writes', () => {
  test.each([
    ['40001', 5],
    ['40P01', 5],
    ['42P05', 1],
    ['26000', 1],
  ])(
    'because of conflicts or lost statements with SQLSTATE %s gets them again until they succeed',
    async (state, times) => {
      await using opened = await openDatabase()
      const { store, user } = opened
      await store.createPlant(user, { id: 7n, name: 'Fern' })
      for (const table of ['plants', 'tokens']) await opened.run(refuseFirst(table, state, times))

      const ids = Array.from({ length: 50 }, (_, id) => BigInt(id + 10))
      await Promise.all([...ids.map((id) => store.createPlant(user, { id, name: 'Ivy' })), store.deletePlant(user, 7n)])

      expect(await listIds(store, user)).toEqual(ids)
      expect(await store.createTokens([newToken('you')])).toMatchObject({ newUsers: ['you'] })
      for (const table of ['plants', 'tokens']) {
        expect(await opened.number(`select last_value from public.refusals_${table}`)).toBeGreaterThan(times)
      }
    },
  )

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
    ['53100', 'store_full', '', 1],
    ['25006', 'store_full', '', 1],
    ['58030', 'store_failed', '', 1],
    ['53200', 'store_busy', '', 1],
    ['42P05', 'store_failed', UNPREPARED, 2],
    ['26000', 'store_failed', UNPREPARED, 2],
  ])('with SQLSTATE %s makes them fail with %s, and stores nothing', async (state, kind, message, times) => {
    await using opened = await openDatabase()
    const { store, user } = opened
    await opened.run(refuseFirst('plants', state, times))

    const refused = await rejectionOf(store.createPlant(user, { id: 1n, name: 'Fern' }))

    expect(refused).toMatchObject({ kind, message, outcomeIsUnknown: false })
    await store.createPlant(user, { id: 1n, name: 'Ivy' })
    expect(await listAll(store, user)).toEqual([{ id: 1n, name: 'Ivy' }])
  })
})

test.skipIf(lacks(POSTGRES_SERVER))(
  'a database that was read-only is written to two seconds after that ends, gets few new sessions until then, and ends no read that is under way',
  async () => {
    await using opened = await openDatabase({ isServer: true })
    const { store, user, server, name, url } = opened
    const onServer = (query: string) => administer(server, async (sql) => (await sql.unsafe(query).values())[0]?.[0])
    const sessions = () => onServer(`select sessions from pg_stat_database where datname = '${name}'`)
    const write = () =>
      outcomesOf(Array.from({ length: 8 }, (_, id) => store.putPlant(user, { id: BigInt(id), name: 'Fern' })))
    const lock = await lockTables(url, 'plantstore.tokens')
    await runScript(server, `alter database ${name} set default_transaction_read_only = on`)
    await onServer(`select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity
      where datname = '${name}' and application_name = '${APPLICATION_NAME}'`)
    expect(new Set(await write())).toEqual(new Set(['store_full']))
    const listing = store.listTokens()
    await untilWaiting(url, 1)

    const [startMs, before] = [performance.now(), Number(await sessions())]
    while (performance.now() < startMs + 2 * RENEW_MIN_MS) {
      expect(new Set([...(await write()), ...(await outcomesOf([store.ensureUser('you', 0)]))])).toEqual(
        new Set(['store_full']),
      )
    }
    // The pool of plants has one connection, and that of users eight.
    const sessionsMax = 9 * ((performance.now() - startMs) / RENEW_MIN_MS + 2)
    expect(Number(await sessions()) - before).toBeLessThanOrEqual(sessionsMax)
    await runScript(server, `alter database ${name} reset default_transaction_read_only`)
    const endedMs = performance.now()
    const listings = `select count(*) from pg_stat_activity where datname = '${name}' and wait_event_type = 'Lock'`
    expect(await onServer(listings)).toBe(1n)
    const areDone = async (attempt: () => Promise<unknown>) => !(await outcomesOf([attempt()])).includes('store_full')
    await until('plants can be stored', () => areDone(() => store.putPlant(user, { id: 0n, name: 'Fern' })))
    await until('users can be stored', () => areDone(() => store.ensureUser('you', 0)))
    await lock.release()

    expect(performance.now() - endedMs).toBeLessThan(2 * RENEW_MIN_MS + SLACK_MS)
    expect(await listing).toMatchObject([{ userName: 'me' }])
  },
)

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
