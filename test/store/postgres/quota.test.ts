import { describe, expect, test } from 'bun:test'
import { POSTGRES_SERVER } from '../../support/postgres.ts'
import { lacks } from '../../support/requirement.ts'
import { createUser, outcomesOf } from '../fixtures.ts'
import { openDatabase } from './open-database.ts'

const fern = (id: number) => ({ id: BigInt(id), name: 'Fern' })

describe.skipIf(lacks(POSTGRES_SERVER))('the quota of plants on PostgreSQL', () => {
  test('holds for groups that others wrote after the ledger has lost an old entry', async () => {
    await using opened = await openDatabase({ quotaPlants: 5 })
    const { store, user, open } = opened
    const old = await open()
    for (const id of [11, 12]) await old.createPlant(user, fern(id))
    await store.createPlant(user, fern(1))
    await opened.run('update plantstore.writers set opened_at_ms = 0 where groups = 2')
    const entries = await opened.number('select count(*) from plantstore.writers')

    const late = await open()
    for (const id of [13, 14]) await late.createPlant(user, fern(id))

    expect(await opened.number('select count(*) from plantstore.writers')).toBe(entries)
    expect(await opened.number('select sum(groups) from plantstore.writers')).toBe(5)
    expect(await outcomesOf([store.createPlant(user, fern(2))])).toEqual(['quota_exceeded'])
  })

  test('gives each create of a group its own result', async () => {
    await using opened = await openDatabase({ quotaPlants: 2 })
    const { store, user } = opened
    const other = await createUser(store, 'other')
    await store.createPlant(user, fern(1))

    const creates = [1, 2, 3, 3, 2].map((id) => store.createPlant(user, fern(id)))
    const others = [1, 2, 3].map((id) => store.createPlant(other, fern(id)))
    const gone = store.createPlant(9999, fern(1))

    expect(await outcomesOf([...creates, ...others, gone])).toEqual([
      ...['plant_exists', 'done', 'quota_exceeded', 'quota_exceeded', 'plant_exists'],
      ...['done', 'done', 'quota_exceeded', 'token_invalid'],
    ])
    expect(await opened.number('select sum(groups) from plantstore.writers')).toBeLessThanOrEqual(3)
  })
})
