import { describe, expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN } from '../../src/domain/int64.ts'
import { storedPlants } from '../support/stored.ts'
import { ENCODED_IDS, REFUSED_IDS } from './support/plant-paths.ts'
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

  test('takes every int64, and deletes no plant beside it', async () => {
    await using service = await startService(transport)
    const ids = [INT64_MIN, INT64_MIN + 1n, -1n, 0n, 1n, 2n ** 53n, 2n ** 53n + 1n, INT64_MAX - 1n, INT64_MAX]
    for (const id of ids) await service.create(`{"id":${id},"name":"${id}"}`)

    const left = new Set(ids.map(String))
    for (const id of ids.toReversed()) {
      expect((await service.delete(id)).status).toBe(204)
      left.delete(String(id))
      expect(await service.names()).toEqual([...left])
    }
  })

  test('decodes percent-encodings in the id once', async () => {
    await using service = await startService(transport)

    for (const [encoded, id] of Object.entries(ENCODED_IDS)) {
      await service.create({ id, name: 'Fern' })
      expect([encoded, (await service.delete(encoded)).status]).toEqual([encoded, 204])
    }
    expect(await service.names()).toEqual([])
  })

  test('refuses an id that is not a decimal int64', async () => {
    await using service = await startService(transport)
    for (const id of [0, 1, -1, 10]) await service.create({ id, name: String(id) })

    for (const id of REFUSED_IDS) {
      const { status, body } = await service.delete(id)
      const refusal = { error: 40004, message: expect.stringMatching(/\w/) }
      expect({ id, status, body }).toEqual({ id, status: 400, body: refusal })
    }
    expect(await service.names()).toEqual(['-1', '0', '1', '10'])
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

  test('answers one of many deletes of the same plant with 204, and all others with 404', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    const answers = await Promise.all(Array.from({ length: 8 }, () => service.delete(1)))

    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([204, ...Array(7).fill(404)])
  })

  test('ignores query parameters and bodies', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3]) await service.create({ id, name: String(id) })

    const answers = [
      await service.delete('1?id=2&limit=x'),
      await service.delete(2, { body: '{"id":3}', headers: { 'content-type': 'application/json' } }),
    ]

    expect(answers.map(({ status, text }) => [status, text])).toEqual([
      [204, ''],
      [204, ''],
    ])
    expect(await service.names()).toEqual(['3'])
  })
})
