import { describe, expect, test } from 'bun:test'
import type { EngineEvent } from '../../../src/engine/observer.ts'
import type { OpenOptions } from '../../../src/store/database.ts'
import { openStore } from '../../../src/store/open.ts'
import { BOOTSTRAP, MIGRATIONS, SCHEMA_VERSION } from '../../../src/store/postgres/schema.ts'
import { administer, lockTables, makeDatabase, POSTGRES_SERVER, runScript } from '../../support/postgres.ts'
import { startCluster } from '../../support/postgres-cluster.ts'
import { OWN_POSTGRES } from '../../support/postgres-system.ts'
import { lacks } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { createUser, IDS, listAll, listIds, rejectionOf } from '../fixtures.ts'
import { failTest } from './open-database.ts'

/** Copies that start at once, on an empty database and on one with half a schema. */
const COPIES = 20
const STARTS = 3

/** A user with a token and a plant in the first schema. */
const OLD_ROWS = `
  insert into plantstore.users (id, name, created_at_ms) values (1, 'me', 7);
  insert into plantstore.tokens (id, user_id, hash, scope, created_at_ms) values (1, 1, sha256(''), 'write', 7);
  insert into plantstore.plants (user_id, id, name) values (1, 1, 'Fern');
  update plantstore.counters set last_user_id = 1, last_token_id = 1`

const open = (url: string, options?: OpenOptions) => openStore(url, failTest, options)

const versionsIn = (url: string) =>
  administer(url, (sql) => sql.unsafe('select version from plantstore.schema_version').values())

/** A store that cannot be opened, and a part of the message. */
const unusable = (message: RegExp) => ({ kind: 'store_unusable', message: expect.stringMatching(message) })

describe.skipIf(lacks(POSTGRES_SERVER))('opening a PostgreSQL database', () => {
  test.concurrent('makes a schema once, also after another process has committed its first statements only, and by many at once', async () => {
    const statements = [...BOOTSTRAP, ...MIGRATIONS.flat()]
    await using database = await makeDatabase({ isEmpty: true })
    for (let done = 0; done <= statements.length; done++) {
      await runScript(database.url, ['select', ...statements.slice(0, done)].join(';'))

      const refused = await rejectionOf(open(database.url, { mustExist: true }))
      const created: string[] = []
      const starts = Array.from({ length: done === 0 ? COPIES : STARTS }, () =>
        open(database.url, { onCreated: (url) => created.push(url) }),
      )
      const stores = await Promise.all(starts)
      const [store = await open(database.url)] = stores
      await Promise.all(stores.map((each, index) => createUser(each, `user-${index}`)))

      expect(refused).toMatchObject(unusable(/There is no plant store/))
      expect(created.length).toBe(1)
      expect(await versionsIn(database.url)).toEqual([[BigInt(SCHEMA_VERSION)]])
      expect(await store.checkIntegrity()).toEqual([])
      expect(await store.listUsers()).toHaveLength(stores.length)
      await Promise.all(stores.map((each) => each.close()))
      await runScript(database.url, 'drop schema plantstore cascade')
    }
  })

  test.concurrent('is undone by a close, which leaves no connection, not even those that write', async () => {
    await using database = await makeDatabase({ isEmpty: true })
    const store = await open(database.url)
    const user = await createUser(store, 'me')
    await store.createPlant(user, { id: 1n, name: 'Fern' })
    await store.deletePlant(user, 1n)
    const others = 'select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
    const countOthers = () => administer(database.url, async (sql) => (await sql.unsafe(others)).length)

    expect(await countOthers()).toBeGreaterThan(2)
    await store.close()
    await until('there is no other connection', async (see) => see(await countOthers()) === 0)
  })

  test.concurrent('completes a migration after another process has committed its first statements only, and one of many starts says so', async () => {
    const later = MIGRATIONS.slice(1).flat()
    await using database = await makeDatabase({ isEmpty: true })
    for (let done = 0; done <= later.length; done++) {
      const first = [...BOOTSTRAP, ...(MIGRATIONS[0] ?? []), 'update plantstore.schema_version set version = 1']
      await runScript(database.url, [...first, OLD_ROWS, ...later.slice(0, done)].join(';'))

      const raised: number[][] = []
      const options = { mustExist: true, onRaised: (...versions: number[]) => raised.push(versions) }
      const stores = await Promise.all(Array.from({ length: STARTS }, () => open(database.url, options)))
      const [store = await open(database.url)] = stores

      expect(raised).toEqual([[1, SCHEMA_VERSION]])
      expect(await versionsIn(database.url)).toEqual([[BigInt(SCHEMA_VERSION)]])
      expect(await store.listUsers()).toMatchObject([{ name: 'me', plants: 1, blockedAtMs: undefined }])
      expect(await store.listTokens()).toMatchObject([{ id: 1, replacedBy: undefined, userBlockedAtMs: undefined }])
      expect(await store.setUserBlock('me', 8)).toBe(true)
      await Promise.all(stores.map((each) => each.close()))
      await runScript(database.url, 'drop schema plantstore cascade')
    }
  })

  test.concurrent('lets a server listen while a migration takes long, which is not ready, and use the store after it', async () => {
    await using database = await makeDatabase({ isEmpty: true })
    const earlier = [...BOOTSTRAP, ...MIGRATIONS.slice(0, 2).flat(), 'update plantstore.schema_version set version = 2']
    await runScript(database.url, [...earlier, OLD_ROWS].join(';'))
    const events: EngineEvent[] = []
    const onEvent = (event: EngineEvent) => events.push(event)
    // The next migration builds an index of this table. Meanwhile the database can store plants.
    const lock = await lockTables(database.url, 'plantstore.tokens', 'row exclusive')
    const store = await open(database.url, { isServer: true, onEvent, onRaised() {} })
    const uses = [
      () => store.checkReady(),
      () => store.listUsers(),
      () => store.createPlant(1, { id: 2n, name: 'Ivy' }),
      () => store.deletePlant(1, 1n),
    ]
    const refused = await Promise.all(uses.map((use) => rejectionOf(use())))
    await lock.release()
    await until('the store has told of it', (see) => see(events).length >= 2)

    const reason = { kind: 'store_failed', cause: 'the database has not been reached yet', outcomeIsUnknown: false }
    expect(refused).toMatchObject([reason, reason, reason, reason])
    expect(events).toMatchObject([
      { level: 'warn', message: expect.stringContaining('the schema is not ready after 5000 ms') },
      { level: 'info', message: 'the database has been reached' },
    ])
    await store.checkReady()
    expect(await listAll(store, 1)).toEqual([{ id: 1n, name: 'Fern' }])
    await store.close()
  })

  test('says what the database does not support', async () => {
    await using database = await makeDatabase({ isEmpty: true })
    // PostgreSQL cannot lock the rows of such a view.
    await runScript(
      database.url,
      `create schema plantstore; create table plantstore.kept as select 1::int8 as version;
       create view plantstore.schema_version as select version from plantstore.kept group by version`,
    )

    const refused = await rejectionOf(open(database.url, { onRaised() {} }))

    expect(refused).toMatchObject(
      unusable(/cannot be used: FOR UPDATE is not allowed .* lacks what this needs, nothing was stored: see docs/),
    )
  })

  test.each([
    ['an encoding that cannot hold every text', `encoding 'SQL_ASCII'`, undefined, /SQL_ASCII/],
    ['array_nulls = off, which stores a missing tag as a text', '', 'array_nulls = off', /array_nulls = off/],
  ])('refuses %s', async (_, settings, setting, message) => {
    await using database = await makeDatabase({ isEmpty: true, settings })
    if (setting !== undefined) await runScript(database.url, `alter database ${database.name} set ${setting}`)

    expect(await rejectionOf(open(database.url))).toMatchObject(unusable(message))
  })

  test('refuses synchronous_commit = off with the durability full and storage, and accepts it with normal', async () => {
    await using database = await makeDatabase()
    await runScript(database.url, `alter database ${database.name} set synchronous_commit = off`)

    for (const durability of ['full', 'storage'] as const) {
      expect(await rejectionOf(open(database.url, { durability }))).toMatchObject(unusable(/synchronous_commit = off/))
    }
    await (await open(database.url, { durability: 'normal' })).close()
  })

  test('refuses a missing database and an unknown user at once, even if it may keep trying', async () => {
    await using database = await makeDatabase()

    for (const url of [
      database.url.replace(database.name, 'nowhere'),
      database.url.replace(/\/\/[^@]*@/, '//nobody@'),
    ]) {
      const refused = await rejectionOf(open(url, { isServer: true }))
      expect(refused).toMatchObject(unusable(/cannot be used/))
    }
  })

  test('names a counter below the largest identifier or above 2^52, and no other', async () => {
    await using database = await makeDatabase()
    const store = await open(database.url)
    await createUser(store, 'me')
    const problems = []
    for (const last of [0, 1, 2 ** 52, 2 ** 52 + 1]) {
      await runScript(database.url, `update plantstore.counters set last_user_id = ${last}, last_token_id = ${last}`)
      problems.push(await store.checkIntegrity())
    }

    const found = ['users are miscounted', 'tokens are miscounted']
    expect(problems).toEqual([found, [], [], found])
    await store.close()
  })

  test('gives the same answers with unusual settings of the database', async () => {
    await using database = await makeDatabase({
      isEmpty: true,
      settings: `locale_provider icu icu_locale 'de-u-kn-true' lc_collate 'C' lc_ctype 'C'`,
    })
    for (const setting of [
      `timezone = 'Asia/Kathmandu'`,
      `datestyle = 'German'`,
      `bytea_output = 'escape'`,
      `client_encoding = 'LATIN1'`,
      `search_path = 'nowhere'`,
      `default_transaction_isolation = 'serializable'`,
      `standard_conforming_strings = off`,
      `extra_float_digits = -15`,
      `enable_indexscan = off`,
    ]) {
      await runScript(database.url, `alter database ${database.name} set ${setting}`)
    }
    const store = await open(database.url)
    const [me] = [await createUser(store, 'me'), await createUser(store, 'Me'), await createUser(store, 'a-10')]
    await createUser(store, 'a-9')

    await Promise.all(IDS.map((id) => store.createPlant(me, { id, name: `ä\\'🌱 ${id}`, tag: '\u0001' })))

    expect(await listAll(store, me)).toEqual(IDS.map((id) => ({ id, name: `ä\\'🌱 ${id}`, tag: '\u0001' })))
    expect((await store.listUsers()).map(({ name }) => name)).toEqual(['Me', 'a-10', 'a-9', 'me'])
    expect((await store.listTokens({ userName: 'me' })).map(({ createdAtMs }) => createdAtMs)).toEqual([
      1_700_000_000_000,
    ])
    await store.close()
  })
})

describe.skipIf(lacks(OWN_POSTGRES))('opening a store on a PostgreSQL server', () => {
  test('refuses fsync = off, and accepts it with the durability storage', async () => {
    using cluster = await startCluster({ fsync: 'off' })

    expect(await rejectionOf(open(cluster.url, { durability: 'normal' }))).toMatchObject(unusable(/fsync = off/))
    await (await open(cluster.url, { durability: 'storage' })).close()
  })

  test('needs a role that may create a schema, or that owns one', async () => {
    using cluster = await startCluster()
    await runScript(cluster.url, 'create role guest login')
    const url = cluster.url.replace('//plantstore@', '//guest@')

    expect(await rejectionOf(open(url))).toMatchObject(unusable(/permission denied for database/))
    await runScript(cluster.url, 'create schema plantstore authorization guest')
    await (await open(url)).close()
    await (await open(url, { mustExist: true })).close()
  })

  test('that is down refuses every request until the server is up, and works then and after restarts', async () => {
    using cluster = await startCluster()
    cluster.stop('fast')
    const events: EngineEvent[] = []
    const refused = await rejectionOf(open(cluster.url))
    expect(refused).toMatchObject(unusable(/cannot be reached/))

    const store = await open(cluster.url, { isServer: true, onEvent: (event) => events.push(event) })
    expect(await rejectionOf(store.checkReady())).toMatchObject({ kind: 'store_failed' })
    expect(await rejectionOf(store.listTokens())).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: false })
    expect(await rejectionOf(createUser(store, 'me'))).toMatchObject({ kind: 'store_failed' })
    cluster.start()
    await until('the store has told of it', (see) => see(events).length >= 2)

    expect(events.map(({ level }) => level)).toEqual(['warn', 'info'])
    const me = await createUser(store, 'me')
    for (const [id, mode] of [
      [1n, 'fast'],
      [2n, 'immediate'],
    ] as const) {
      await store.createPlant(me, { id, name: 'Fern' })
      cluster.stop(mode)
      expect(await rejectionOf(listAll(store, me))).toMatchObject({ kind: 'store_failed' })
      cluster.start()
      expect(await listIds(store, me)).toContain(id)
    }
    await store.close()
  })

  test('with a newer schema is refused, or reported once a server that was down is up', async () => {
    using cluster = await startCluster()
    await (await open(cluster.url)).close()
    await runScript(cluster.url, 'update plantstore.schema_version set version = 999')
    expect(await rejectionOf(open(cluster.url))).toMatchObject(unusable(/version 999.*newer/))
    cluster.stop('fast')
    const failed = Promise.withResolvers<unknown>()

    const store = await openStore(cluster.url, failed.resolve, { isServer: true })
    cluster.start()

    expect(await failed.promise).toMatchObject(unusable(/999/))
    await store.close()
  })
})
