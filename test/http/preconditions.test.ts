import { describe, expect, test } from 'bun:test'
import { bytesOf, type Service, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

describe.each(TRANSPORTS)('DELETE /plants/{id} with preconditions, $name', (transport) => {
  test('deletes the plant if If-Match names its ETag or *', async () => {
    await using service = await startService(transport)
    for (const build of [(etag: string) => etag, () => '*', (etag: string) => `"other", ${etag}`]) {
      const etag = await plant(service)
      expect((await remove(service, { 'if-match': build(etag) })).status).toBe(204)
      expect(await service.names()).toEqual([])
    }
  })

  test('is 412 and keeps the plant if If-Match names neither: weak tags do not count', async () => {
    await using service = await startService(transport)
    const etag = await plant(service)

    for (const value of ['"other"', `W/${etag}`, etag.slice(1, -1), '', '"*"', `"a", W/${etag}`, `${etag}x`]) {
      const answer = await remove(service, { 'if-match': value })
      expect([value, answer.status, answer.body.error]).toEqual([value, 412, 41201])
    }
    expect(await service.names()).toEqual(['Fern'])
  })

  test('is 412 and keeps the plant if If-None-Match names its ETag, also weakly, or *', async () => {
    await using service = await startService(transport)
    const etag = await plant(service)

    for (const value of [etag, `W/${etag}`, '*', `"other", ${etag}`]) {
      const answer = await remove(service, { 'if-none-match': value })
      expect([value, answer.status, answer.body.error]).toEqual([value, 412, 41201])
    }
    expect(await service.names()).toEqual(['Fern'])
    expect((await remove(service, { 'if-none-match': '"other"' })).status).toBe(204)
  })

  test('is 412 and keeps the plant if either header is malformed', async () => {
    await using service = await startService(transport)
    const etag = await plant(service)
    const broken = [`"x,"${etag}`, `${etag}, a`, `"a" ${etag}`, `*, ${etag}`, `"a b", ${etag}`, `w/${etag}`, 'a', ',"']

    for (const value of broken) {
      const answers = [await remove(service, { 'if-match': value }), await remove(service, { 'if-none-match': value })]
      const both = await remove(service, { 'if-match': etag, 'if-none-match': value })
      expect([value, ...answers, both].map((answer) => (typeof answer === 'string' ? answer : answer.status))).toEqual([
        value,
        ...[412, 412, 412],
      ])
    }
    // A list may have empty elements, and tags may hold commas.
    expect((await remove(service, { 'if-match': `,"a,b" ,, ${etag},` })).status).toBe(204)
  })

  test('needs both headers to agree if both are sent', async () => {
    await using service = await startService(transport)
    const etag = await plant(service)

    expect((await remove(service, { 'if-match': etag, 'if-none-match': etag })).status).toBe(412)
    expect((await remove(service, { 'if-match': '"other"', 'if-none-match': '"other"' })).status).toBe(412)
    expect((await remove(service, { 'if-match': etag, 'if-none-match': '"other"' })).status).toBe(204)
  })

  test('is 404 for a plant that the user does not have, whatever the preconditions say', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'you' })
    await service.create({ id: 1, name: 'Fern' }, { token })
    const absent = bytesOf(await remove(service, {}, 7))

    for (const headers of [{ 'if-match': '*' }, { 'if-match': '"x"' }, { 'if-none-match': '*' }])
      for (const id of [1, 7]) expect([id, bytesOf(await remove(service, headers, id))]).toEqual([id, absent])
  })

  test('never deletes another plant than the expected one while others replace it', async () => {
    await using service = await startService(transport)
    for (let round = 0; round < 20; round++) {
      const etag = await plant(service)

      const deletion = remove(service, { 'if-match': etag })
      const replacement = remove(service, {}).then(async ({ status }) => {
        await service.create({ id: 1, name: 'Ivy' })
        return status
      })

      const statuses = [(await deletion).status, await replacement]
      expect([
        [204, 404],
        [404, 204],
        [412, 204],
      ]).toContainEqual(statuses)
      expect(await service.names()).toEqual(['Ivy'])
      await remove(service, {})
    }
  })
})

/** Creates plant 1 and returns its ETag. */
async function plant(service: Service): Promise<string> {
  expect((await service.create({ id: 1, name: 'Fern', tag: 'indoor' })).status).toBe(200)
  return (await service.get(1)).headers.get('etag') ?? ''
}

const remove = (service: Service, headers: Record<string, string>, id = 1) => service.delete(id, { headers })
