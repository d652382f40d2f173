import { describe, expect, test } from 'bun:test'
import { bytesOf, type RequestOptions, type Service, startService, TRANSPORTS } from './support/service.ts'

type Asked = readonly [method: string, path: string, options?: RequestOptions]

const THEIR_ID = 7
/** What somebody tries who knows or guesses the id of another user's plant. None of it changes anything of their own. */
const ROUTES: readonly Asked[] = [
  ...['', '?limit=1', '?limit=0', '?limit=2147483647', '?limit=1&user=me', '?limit=1&id=7', '?id=7'].map(
    (query): Asked => ['GET', `/plants${query}`],
  ),
  ...[THEIR_ID - 1, THEIR_ID, THEIR_ID + 1, 0, -1, '9223372036854775807', '-9223372036854775808'].flatMap(
    (after): Asked[] => [
      ['GET', `/plants?after=${after}`],
      ['GET', `/plants?limit=1&after=${after}`],
      ['HEAD', `/plants?limit=1&after=${after}`],
    ],
  ),
  ['HEAD', '/plants?limit=1'],
  ['DELETE', `/plants/${THEIR_ID}`],
  ['DELETE', `/plants/%3${THEIR_ID}`],
  ['DELETE', `/plants/${THEIR_ID}?user=me`],
  ['GET', `/plants/${THEIR_ID}`],
  ['PUT', `/plants/${THEIR_ID}`, { body: '{}' }],
  ['POST', '/plants', { headers: { 'content-type': 'application/json' }, body: `{"id":${THEIR_ID}}` }],
]

const askAll = async (service: Service, token: string, routes = ROUTES): Promise<string[]> => {
  const answers: string[] = []
  for (const [method, path, options] of routes)
    answers.push(`${method} ${path} ${bytesOf(await service.request(method, path, { ...options, token }))}`)
  return answers
}

describe.each(TRANSPORTS)('the plants of others, $name', (transport) => {
  test('lets all tokens of a user see and delete the same plants', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken()
    await service.create({ id: 1, name: 'Fern' })

    expect(await service.names(token)).toEqual(['Fern'])
    expect((await service.delete(1, { token })).status).toBe(204)
    expect(await service.names()).toEqual([])
  })

  test('keeps two users who have the same id apart', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'somebody.else' })
    await service.create({ id: 1, name: 'Fern' })

    expect(await service.names(token)).toEqual([])
    expect(await service.create({ id: 1, name: 'Ivy' }, { token })).toMatchObject({
      status: 200,
      body: { name: 'Ivy' },
    })
    expect([await service.names(), await service.names(token)]).toEqual([['Fern'], ['Ivy']])

    expect((await service.delete(1, { token })).status).toBe(204)
    expect([await service.names(), await service.names(token)]).toEqual([['Fern'], []])
  })

  test("answers the deletion of another user's plant with the bytes of one that nobody has", async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'somebody.else' })
    await service.create({ id: 1, name: 'Fern' })

    const others = await service.delete(1, { token })
    const nobodys = await service.delete(2, { token })

    expect(others).toMatchObject({ status: 404, body: { error: 40402, message: 'You have no plant with this id.' } })
    expect(bytesOf(others)).toBe(bytesOf(nobodys))
    expect(await service.names()).toEqual(['Fern'])
  })

  test('are the same as none by every route, whatever is guessed, whether their user has just asked or not', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'somebody.else' })
    await service.create({ id: THEIR_ID + 2, name: 'Moss' }, { token })
    const before = await askAll(service, token)

    for (const id of [THEIR_ID - 3, THEIR_ID, THEIR_ID + 1, THEIR_ID + 3])
      await service.create({ id, name: `Fern ${id}` })
    await askAll(
      service,
      service.token,
      ROUTES.filter(([method]) => method === 'GET'),
    )

    expect(await askAll(service, token)).toEqual(before)
    expect(before.join()).not.toContain('Fern')
    expect(await service.names()).toEqual(['Fern 4', 'Fern 7', 'Fern 8', 'Fern 10'])
  })

  test('cannot be asked for by the ETag of their list', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'somebody.else' })
    await service.create({ id: THEIR_ID, name: 'Fern' })
    const etag = (await service.list('?limit=1')).headers.get('etag') ?? ''

    const answer = await service.list('?limit=1', { token, headers: { 'if-none-match': etag } })

    expect([etag, answer.status, answer.body]).toEqual([expect.stringMatching(/^"/), 200, []])
  })

  test('are not led to by Link, nor stand in the way of an id', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'somebody.else' })
    for (const id of [1, 2, 3, 4, 5]) await service.create({ id, name: `Fern ${id}` })
    for (const id of [1, 5]) expect((await service.create({ id, name: `Moss ${id}` }, { token })).status).toBe(200)

    const first = await service.list('?limit=1', { token })
    const second = await service.list('?limit=1&after=1', { token })

    expect([first.headers.get('link'), first.body]).toEqual(['<?limit=1&after=1>; rel="next"', [{ name: 'Moss 1' }]])
    expect([second.headers.get('link'), second.body]).toEqual([null, [{ name: 'Moss 5' }]])
  })
})
