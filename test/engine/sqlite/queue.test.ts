import { expect, test } from 'bun:test'
import { outcomesOf } from '../../store/fixtures.ts'
import { openWithUser, queryAll } from '../../store/sqlite/files.ts'

test('writes that wait are stored exactly if they were answered with success, when the store is closed among many of them', async () => {
  await using opened = await openWithUser({ isServer: true })
  const { store, user, path } = opened
  const answered = Promise.withResolvers<void>()

  const writes = Array.from({ length: 2000 }, (_, id) => {
    const write = store.createPlant(user, { id: BigInt(id), name: 'Fern' })
    write.then(answered.resolve, () => {})
    return write
  })
  await answered.promise
  await store.close()

  const outcomes = await outcomesOf(writes)
  expect(outcomes.filter((outcome) => outcome !== 'done' && outcome !== BUSY)).toEqual([])
  const done = outcomes.flatMap((outcome, id) => (outcome === 'done' ? [[BigInt(id)]] : []))
  expect(done.length).toBeGreaterThan(0)
  expect(done.length).toBeLessThan(outcomes.length)
  expect(await outcomesOf([store.createPlant(user, { id: 3000n, name: 'Fern' })])).toEqual([BUSY])
  expect(queryAll(path, 'select id from plants order by id')).toEqual(done)
})

const BUSY = 'store_busy'
