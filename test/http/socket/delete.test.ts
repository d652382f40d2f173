import { describe, expect, test } from 'bun:test'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

describe.each(SOCKET_TRANSPORTS)('DELETE /plants/{id} on a connection of its own, $name', (transport) => {
  test('answers the same bytes if the plant is absent, was deleted before, or belongs to another user', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'you' })
    await service.create({ id: 1, name: 'Fern' })
    await service.create({ id: 2, name: 'Ivy' }, { token })
    await service.delete(1)
    const bytesOf = async (id: number) => {
      const { text } = await service.exchange('DELETE', `/plants/${id}`)
      return text.replaceAll(/^(?:x-request-id|date): .*\r\n/gim, '')
    }

    const [absent = '', ...others] = [await bytesOf(7), await bytesOf(1), await bytesOf(2)]

    expect(absent).toMatch(/^HTTP\/1\.1 404 .*"error":40402/s)
    expect(others).toEqual([absent, absent])
  })

  test('answers success without a body and headers of one', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })

    const { status, headers, body } = await service.exchange('DELETE', '/plants/1')

    expect([status, body]).toEqual([204, ''])
    expect([...headers.keys()].toSorted()).toEqual(['cache-control', 'date', 'x-content-type-options', 'x-request-id'])
  })

  test('refuses bytes in the path that are not ASCII', async () => {
    await using service = await startService(transport)

    for (const id of ['\uff11', '\u0661', '\u22121']) {
      const { status, body } = await service.exchange('DELETE', `/plants/${id}`)
      expect([id, status, JSON.parse(body).error]).toEqual([id, 400, 40004])
    }
  })
})
