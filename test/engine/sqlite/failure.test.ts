import { expect, test } from 'bun:test'
import { createToken } from '../../store/fixtures.ts'
import { damageTable, makeDatabase, makeDatabaseFolder, openForTest, snapshot, WAL } from '../../store/sqlite/files.ts'

test('closing leaves the files unchanged after a damaged page was read: no checkpoint runs on a damaged database', async () => {
  using files = makeDatabaseFolder()
  await makeDatabase(files.path)
  await using opened = await openForTest(files.path)
  damageTable(files.path, 'plants')
  await createToken(opened.store, 'you')
  await expect(opened.store.createPlant(1, { id: 100n, name: 'Ivy' })).rejects.toMatchObject({ kind: 'store_failed' })
  const { 'plantstore.db': database, [`plantstore.db${WAL}`]: wal } = snapshot(files.folder)

  await opened.close()

  expect(wal).toBeString()
  expect(snapshot(files.folder)).toMatchObject({ 'plantstore.db': database, [`plantstore.db${WAL}`]: wal })
})
