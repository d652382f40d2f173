import { describe, expect, test } from 'bun:test'
import { startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

describe.each(TRANSPORTS)('a list with include=id, $name', (transport) => {
  test('has another ETag than the list without ids, and is answered from the cache with ids', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const queries = ['?limit=5', '?limit=5&include=id', '?limit=5', '?limit=5&include=id']

    const answers = []
    for (const query of queries) answers.push(await service.list(query))

    const [plain, withIds] = [{ text: '[{"name":"Fern"}]' }, { text: '[{"id":1,"name":"Fern"}]' }]
    expect(answers).toMatchObject([plain, withIds, plain, withIds])
    const etags = answers.map(({ headers }) => headers.get('etag'))
    expect([etags[2], etags[3], new Set(etags).size]).toEqual([etags[0] ?? '', etags[1] ?? '', 2])
    const headers = { 'if-none-match': etags[1] ?? '' }
    expect((await service.list('?limit=5&include=id', { headers })).status).toBe(304)
    expect((await service.list('?limit=5', { headers })).status).toBe(200)
  })
})
