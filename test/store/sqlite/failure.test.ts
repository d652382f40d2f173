import { describe, expect, test } from 'bun:test'
import { createToken, createUser } from '../fixtures.ts'
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

/** An open store. The root page of a table was damaged before the store read it. */
async function openDamaged(path: string, table: string) {
  await makeDatabase(path)
  const opened = await openForTest(path)
  damageTable(path, table)
  return opened
}

/** Deletes the users with another program, which does not enforce foreign keys. */
const makeOrphans = (path: string) => runSql(path, 'pragma foreign_keys = off', 'delete from users')
