import { expect, test } from 'bun:test'
import { joinStore } from '../../../src/store/open.ts'
import { createToken, newToken, outcomesOf, rejectionOf } from '../../store/fixtures.ts'
import { damageTable, makeDatabase, makeDatabaseFolder, openForTest, snapshot, WAL } from '../../store/sqlite/files.ts'

test('closing leaves the files unchanged after a damaged page was read: no checkpoint runs on a damaged database', async () => {
  using files = makeDatabaseFolder()
  await makeDatabase(files.path)
  await using opened = await openForTest(files.path)
  damageTable(files.path, 'plants')
  await createToken(opened.store, 'you')
  expect(await rejectionOf(opened.store.createPlant(1, { id: 100n, name: 'Ivy' }))).toMatchObject({
    kind: 'store_failed',
  })
  const { 'plantstore.db': database, [`plantstore.db${WAL}`]: wal } = snapshot(files.folder)

  await opened.close()

  expect(wal).toBeString()
  expect(snapshot(files.folder)).toMatchObject({ 'plantstore.db': database, [`plantstore.db${WAL}`]: wal })
})

test('no thread of a process commits anything after the write of another one has met a damaged page', async () => {
  using files = makeDatabaseFolder()
  await makeDatabase(files.path)
  await using opened = await openForTest(files.path, { isServer: true })
  const { store } = opened
  const { share = () => expect.unreachable() } = store
  const join = () => joinStore(share(), () => {}, { monotonicMs: () => performance.now() })
  const [first, second] = [join(), join()]
  damageTable(files.path, 'plants')

  const met = await outcomesOf([first.createPlant(1, { id: 100n, name: 'Ivy' })])
  const later = await outcomesOf([second.createTokens([newToken('you')])])
  for (const joined of [first, second]) await joined.close()

  expect([met, later]).toEqual([['store_failed'], ['store_failed']])
  expect(await store.findUser('you')).toBeUndefined()
})
