import { describe, expect, test } from 'bun:test'
import { AppError } from '../../../src/domain/error.ts'
import { openWithUser, queryAll } from './files.ts'

describe('writes that wait', () => {
  test('are stored exactly if they were answered with success, when the store is closed among many of them', async () => {
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
})

const BUSY = 'store_busy'

/** The outcome of each write. A refusal by the queue has a known outcome. */
async function outcomesOf(writes: readonly Promise<unknown>[]): Promise<string[]> {
  const results = await Promise.allSettled(writes)
  return results.map((result) => {
    if (result.status === 'fulfilled') return 'done'
    if (!(result.reason instanceof AppError) || result.reason.outcomeIsUnknown) throw result.reason
    return result.reason.kind
  })
}
