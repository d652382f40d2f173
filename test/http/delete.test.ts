import { describe, expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN } from '../../src/domain/int64.ts'
import { storedPlants } from '../support/stored.ts'
import { bytesOf, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

describe.each(TRANSPORTS)('DELETE /plants/{id}, $name', (transport) => {
  test('answers without a body once the plant is out of the database', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3]) await service.create({ id, name: `Plant ${id}` })

    const answer = await service.delete(2)

    expect([answer.status, answer.text, answer.headers.get('content-type')]).toEqual([204, '', null])
    expect((await storedPlants(service.database)).map(({ id }) => id)).toEqual([1n, 3n])
    expect(await service.names()).toEqual(['Plant 1', 'Plant 3'])
  })

  test('refuses a plant that is absent, was deleted before, or belongs to another user, with the same bytes', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'you' })
    await service.create({ id: 1, name: 'Fern' })
    await service.create({ id: 2, name: 'Ivy' }, { token })
    await service.delete(1)

    const absent = await service.delete(7)

    expect(absent).toMatchObject({ status: 404, body: { error: 40402, message: 'You have no plant with this id.' } })
    for (const id of [1, 2, INT64_MIN, INT64_MAX])
      expect([id, bytesOf(await service.delete(id))]).toEqual([id, bytesOf(absent)])
    expect(await service.names(token)).toEqual(['Ivy'])
  })

  test('ignores query parameters and bodies', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3]) await service.create({ id, name: String(id) })

    const headers = { 'content-type': 'application/json' }
    const { status } = await service.delete('1?id=2&limit=x', { body: '{"id":3}', headers })

    expect(status).toBe(204)
    expect(await service.names()).toEqual(['2', '3'])
  })
})
