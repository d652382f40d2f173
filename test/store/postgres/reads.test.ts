import { describe, expect, test } from 'bun:test'
import type { Store } from '../../../src/domain/store.ts'
import { openStore } from '../../../src/store/open.ts'
import { READS_MAX } from '../../../src/store/postgres/reads.ts'
import { administer, lockTables, makeDatabase, POSTGRES_SERVER, untilWaiting } from '../../support/postgres.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { lacks } from '../../support/requirement.ts'
import { createUser, listAll } from '../fixtures.ts'

const TABLES = 'plantstore.users, plantstore.tokens, plantstore.plants'

/** Reads for which an administrator waits, and what they have to say of a store with one user. */
const READS_OF_ALL: readonly { readonly name: string; readonly read: (store: Store) => Promise<readonly unknown[]> }[] =
  [
    { name: 'listUsers', read: (store) => store.listUsers() },
    { name: 'listTokens', read: (store) => store.listTokens() },
    { name: 'listTokens of a user', read: (store) => store.listTokens('me') },
    { name: 'checkIntegrity', read: (store) => store.checkIntegrity() },
  ]

describe.skipIf(lacks(POSTGRES_SERVER))('reads of a server', () => {
  test('of everything may take longer than one for a request, which is refused', async () => {
    await using opened = await openUsed()
    const { url, user } = opened
    const expected = await Promise.all(READS_OF_ALL.map(async ({ read }) => read(await opened.open())))
    const stores = await Promise.all(READS_OF_ALL.map(opened.open))
    const other = await opened.open()
    const lock = await lockTables(url, TABLES)

    const reads = Promise.allSettled(READS_OF_ALL.map(({ read }, index) => read(stores[index] ?? other)))
    await untilWaiting(url, READS_OF_ALL.length)
    // It has begun after them, and is given up before them.
    const refused = await rejectionOf(listAll(other, user))
    await lock.release()

    expect(refused).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: false })
    const outcomes = (await reads).map((result) => (result.status === 'fulfilled' ? result.value : result.reason))
    expect(nameEach(outcomes)).toEqual(nameEach(expected))
  })

  test('are as many as READS_MAX, and one more is refused; also after all of them have failed', async () => {
    await using opened = await openUsed()
    const { store, url } = opened
    // These alone have all the time that a busy machine takes.
    const readAll = async () => {
      const reads = await Promise.allSettled(Array.from({ length: READS_MAX + 1 }, () => store.listUsers()))
      return reads.map((result) => (result.status === 'fulfilled' ? result.value.length : result.reason.kind))
    }
    const rename = (from: string, to: string) =>
      administer(url, (sql) => sql.unsafe(`alter table plantstore.${from} rename to ${to}`).simple())

    expect(READS_MAX).toBe(4096)
    await rename('users', 'elsewhere')
    expect(await readAll()).toEqual([...Array(READS_MAX).fill('store_failed'), 'store_busy'])
    await rename('elsewhere', 'users')
    expect(await readAll()).toEqual([...Array(READS_MAX).fill(1), 'store_busy'])
    expect(await store.listUsers()).toMatchObject([{ name: 'me', plants: 1, tokens: 1 }])
  })
})

const nameEach = (values: readonly unknown[]) => READS_OF_ALL.map(({ name }, index) => ({ name, value: values[index] }))

/** A database with user `me`, and stores on it. */
async function openUsed() {
  const database = await makeDatabase()
  const stores: Store[] = []
  const open = async () => {
    const store = await openStore(database.url, (error) => {
      throw error
    })
    stores.push(store)
    return store
  }
  const store = await open()
  const user = await createUser(store, 'me')
  await store.createPlant(user, { id: 1n, name: 'Fern' })
  return {
    store,
    user,
    url: database.url,
    open,
    async [Symbol.asyncDispose]() {
      await Promise.all(stores.map((each) => each.close()))
      await database[Symbol.asyncDispose]()
    },
  }
}
