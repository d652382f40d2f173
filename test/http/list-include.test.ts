import { describe, expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN } from '../../src/domain/int64.ts'
import { startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

describe.each(TRANSPORTS)('a list with include=id, $name', (transport) => {
  test('has the id of each plant, exact at every digit, capped or not', async () => {
    await using service = await startService(transport)
    const ids = [INT64_MIN, -1n, 0n, 9007199254740993n, INT64_MAX]
    for (const id of ids) await service.create(`{"id":${id},"name":"Fern","tag":"${id}"}`)
    const text = `[${ids.map((id) => `{"id":${id},"name":"Fern","tag":"${id}"}`)}]`

    for (const query of ['?include=id', '?include=id&limit=5', '?limit=9&include=id'])
      expect([query, (await service.list(query)).text]).toEqual([query, text])
    expect((await service.list()).text).not.toContain('"id"')
    expect((await service.list('?limit=5')).text).not.toContain('"id"')
  })

  test('has a Link that repeats include, and leads through every plant once', async () => {
    await using service = await startService(transport)
    for (const id of [1, 2, 3, 4, 5]) await service.create({ id, name: String(id) })

    const texts: string[] = []
    for (let query: string | undefined = '?limit=2&include=id'; query !== undefined; ) {
      const answer = await service.list(query)
      texts.push(answer.text)
      query = /<(.*)>/.exec(answer.headers.get('link') ?? '')?.[1]
      if (query !== undefined) expect(query).toMatch(/^\?limit=2&after=\d&include=id$/)
    }

    expect(texts).toEqual([
      '[{"id":1,"name":"1"},{"id":2,"name":"2"}]',
      '[{"id":3,"name":"3"},{"id":4,"name":"4"}]',
      '[{"id":5,"name":"5"}]',
    ])
  })

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
