import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'

const statusesOf = async (server: Awaited<ReturnType<typeof serve>>, token: string, count: number) => {
  const statuses: number[] = []
  while (statuses.length < count) statuses.push((await server.request('GET', '/plants?limit=1', { token })).status)
  return statuses
}

describe.concurrent('the rate limit of serve', () => {
  test('follows flags before variables, and each process counts alone', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    const env = { PLANTSTORE_RATE_LIMIT: '1/h', PLANTSTORE_RATE_BURST: '1' }
    await using first = await serve(database, [], { env })
    await using second = await serve(database, ['--rate-limit', '2/h'], { env })

    expect(await statusesOf(first, token, 3)).toEqual([200, 200, 429])
    expect(await statusesOf(second, token, 4)).toEqual([200, 200, 200, 429])
    expect(await statusesOf(first, token, 1)).toEqual([429])
  })

  test('starts again with each start of the server', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)

    for (const _ of ['first', 'again']) {
      await using server = await serve(database, ['--rate-limit', '1/h'])
      expect(await statusesOf(server, token, 2)).toEqual([200, 429])
      // The period of the limit keeps no process alive.
      expect(await server.end()).toBe(0)
    }
  })
})
