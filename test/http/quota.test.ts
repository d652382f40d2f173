import { describe, expect, test } from 'bun:test'
import { expectDescribed } from './support/described.ts'
import { startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

const REFUSAL = {
  error: 40302,
  message: 'You have as many plants as this server allows, nothing was stored: delete a plant first.',
}

describe.each(TRANSPORTS)('--quota-plants, $name', (transport) => {
  test('refuses one plant too many with 40302 and without a challenge, and stores nothing of it', async () => {
    await using service = await startService(transport, { quotaPlants: 2 })
    for (const id of [1, 2]) expect((await service.create({ id, name: 'Fern' })).status).toBe(200)

    const answer = await service.create({ id: 3, name: 'Ivy' })

    expectDescribed('POST', '/plants', answer)
    const { status, headers, body } = answer
    expect({ status, body }).toEqual({ status: 403, body: REFUSAL })
    const names = ['www-authenticate', 'retry-after', 'etag', 'content-type', 'cache-control']
    expect(names.map((name) => headers.get(name))).toEqual([null, null, null, 'application/json', 'no-store'])
    expect(await service.names()).toEqual(['Fern', 'Fern'])
  })

  test('has room for one plant again after a delete', async () => {
    await using service = await startService(transport, { quotaPlants: 2 })
    for (const id of [1, 2, 3]) await service.create({ id, name: `Fern ${id}` })

    const codes: number[] = []
    for (const id of [3, 4]) {
      codes.push((await service.delete(id - 2)).status)
      for (const each of [id, 9]) {
        const { status, body } = await service.create({ id: each, name: `Fern ${each}` })
        codes.push(body.error ?? status)
      }
    }

    expect(codes).toEqual([204, 200, 40302, 204, 200, 40302])
    expect(await service.names()).toEqual(['Fern 3', 'Fern 4'])
  })

  test('counts the plants of a user over all tokens, and no plants of other users', async () => {
    await using service = await startService(transport, { quotaPlants: 1 })
    const { text: second } = await service.createToken()
    const { text: stranger } = await service.createToken({ user: 'you' })

    const codes: number[] = []
    for (const [id, token] of [service.token, second, stranger, stranger].entries()) {
      const { status, body } = await service.create({ id, name: 'Fern' }, { token })
      codes.push(body.error ?? status)
    }

    expect(codes).toEqual([200, 40302, 200, 40302])
  })

  test('of 0 lets nobody create, and off lets everybody', async () => {
    await using none = await startService(transport, { quotaPlants: 0 })
    await using any = await startService(transport)

    expect((await none.create({ id: 1, name: 'Fern' })).body).toEqual(REFUSAL)
    expect((await any.create({ id: 1, name: 'Fern' })).status).toBe(200)
    expect(await none.names()).toEqual([])
  })
})
