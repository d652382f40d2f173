import { describe, expect, test } from 'bun:test'
import type { Store } from '../../../src/domain/store.ts'
import { CREATED_AT_MS, createToken, createUser, newToken } from '../fixtures.ts'
import {
  createPlants,
  damageTable,
  makeDatabase,
  makeDatabaseFolder,
  openForTest,
  runSql,
  snapshot,
  WAL,
} from './files.ts'

describe('after a damaged page was read', () => {
  test('no further write begins in any table, and onFailure is called once', async () => {
    using files = makeDatabaseFolder()
    await using opened = await openDamaged(files.path, 'plants')
    const { store, failures } = opened
    const user = (await store.listTokens({ userName: 'me' }))[0]?.userId ?? 0

    await expect(store.createPlant(user, { id: 100n, name: 'Ivy' })).rejects.toMatchObject({
      kind: 'store_failed',
      outcomeIsUnknown: true,
    })

    for (const write of writes(store, user)) {
      await expect(write()).rejects.toMatchObject({ kind: 'store_failed', outcomeIsUnknown: false })
    }
    await expect(store.listPlants(user, { after: undefined, limit: 1 })).rejects.toMatchObject({ kind: 'store_failed' })
    expect(failures.map(({ kind }) => kind)).toEqual(['store_failed'])
    // What is not damaged can be read, and nothing of the refused writes is there.
    expect(await store.listTokens()).toMatchObject([
      { userName: 'me', revokedAtMs: undefined, lastUsedAtMs: undefined },
    ])
  })

  test('closing leaves the files unchanged: no checkpoint runs on a damaged database', async () => {
    using files = makeDatabaseFolder()
    await using opened = await openDamaged(files.path, 'plants')
    await createToken(opened.store, 'you')
    await expect(opened.store.createPlant(1, { id: 100n, name: 'Ivy' })).rejects.toMatchObject({ kind: 'store_failed' })
    const { 'plantstore.db': database, [`plantstore.db${WAL}`]: wal } = snapshot(files.folder)

    await opened.close()

    expect(wal).toBeString()
    expect(snapshot(files.folder)).toMatchObject({ 'plantstore.db': database, [`plantstore.db${WAL}`]: wal })
  })
})

describe('checkIntegrity of a damaged database', () => {
  test('lists the rows that belong to no user', async () => {
    using files = makeDatabaseFolder()
    await using opened = await openForTest(files.path)
    const user = await createUser(opened.store, 'me')
    await createPlants(opened.store, user, 2)
    makeOrphans(files.path)

    const problems = await opened.store.checkIntegrity()

    expect(problems).toHaveLength(3)
    expect(problems.filter((line) => line.includes('plants'))).toHaveLength(2)
    expect(problems.filter((line) => line.includes('tokens'))).toHaveLength(1)
    expect(problems.filter((line) => line.includes('null'))).toEqual([])
  })
})

/** Every kind of write. */
const writes = (store: Store, user: number) => [
  () => store.createPlant(user, { id: 101n, name: 'Ivy' }),
  () => store.deletePlant(user, 1n),
  () => store.createTokens([newToken('you')]),
  () => store.revokeTokens({ userName: 'me' }, CREATED_AT_MS),
  () => store.touchTokens(new Map([[1, CREATED_AT_MS]]), CREATED_AT_MS),
  () => store.deleteUser('me'),
  () => store.checkReady(),
]

/** An open store. The root page of a table was damaged before the store read it. */
async function openDamaged(path: string, table: string) {
  await makeDatabase(path)
  const opened = await openForTest(path)
  damageTable(path, table)
  return opened
}

/** Deletes the users with another program, which does not enforce foreign keys. */
const makeOrphans = (path: string) => runSql(path, 'pragma foreign_keys = off', 'delete from users')
