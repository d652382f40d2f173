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
})
