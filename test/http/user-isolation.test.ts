import { describe, expect, test } from 'bun:test'
import { bytesOf, type RequestOptions, type Service, startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

type Sent = readonly [method: string, path: string, options?: RequestOptions]

const THEIR_ID = 7
/** Requests of a user who guesses the id of another user's plant. No request changes a plant of the user's own. */
const GUESSES: readonly Sent[] = [
  ...['', '?limit=1', '?limit=0', '?limit=2147483647', '?limit=1&user=me', '?limit=1&id=7', '?id=7'].map(
    (query): Sent => ['GET', `/plants${query}`],
  ),
  ...[THEIR_ID - 1, THEIR_ID, THEIR_ID + 1, 0, -1, '9223372036854775807', '-9223372036854775808'].flatMap(
    (after): Sent[] => [
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

async function sendAll(service: Service, token: string, requests = GUESSES): Promise<string[]> {
  const answers: string[] = []
  for (const [method, path, options] of requests)
    answers.push(`${method} ${path} ${bytesOf(await service.request(method, path, { ...options, token }))}`)
  return answers
}

describe.each(TRANSPORTS)('the plants of a user, $name', (transport) => {
  test('look to another user as if there were none, whatever is guessed and even if their lists are cached', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'you' })
    await service.create({ id: THEIR_ID + 2, name: 'Moss' }, { token })
    const before = await sendAll(service, token)

    for (const id of [THEIR_ID - 3, THEIR_ID, THEIR_ID + 1, THEIR_ID + 3])
      await service.create({ id, name: `Fern ${id}` })
    await sendAll(
      service,
      service.token,
      GUESSES.filter(([method]) => method === 'GET'),
    )

    expect(await sendAll(service, token)).toEqual(before)
    expect(before.join()).not.toContain('Fern')
    expect(await service.names()).toEqual(['Fern 4', 'Fern 7', 'Fern 8', 'Fern 10'])
  })
})
