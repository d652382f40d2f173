import { describe, expect, test } from 'bun:test'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeDatabase, POSTGRES_SERVER } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { done } from './support/answers.ts'
import { codeOf } from './support/service-client.ts'

describe.concurrent.skipIf(lacks(POSTGRES_SERVER))('two servers on one PostgreSQL database', () => {
  test('accept no token of a user once the user has been blocked for a second', async () => {
    await using database = await makeDatabase()
    const token = await createTokenIn(database.url)
    await using one = await serve(database.url)
    await using two = await serve(database.url)
    const codes = () => Promise.all([one, two].map((server) => codeOf(server, token)))

    expect(await codes()).toEqual([200, 200])
    const blocked = await runPlantstore(['user', 'block', 'me', '--database', database.url])
    expect(blocked).toEqual(done('Blocked user me.'))
    // The promise is about time alone: a request meanwhile would make the server learn of the change.
    await Bun.sleep(TOKEN_CHANGES_SEEN_WITHIN_MS)

    expect(await codes()).toEqual([40102, 40102])
  })

  test('accept the old token of a rotation until the overlap ends, and the new one from its beginning on', async () => {
    await using database = await makeDatabase()
    let [old, next] = ['', await createTokenIn(database.url)]
    await using one = await serve(database.url)
    await using two = await serve(database.url)
    const codes = (token: string) => Promise.all([one, two].map((server) => codeOf(server, token)))
    let endMs = 0
    let during: number[] = []
    // If a busy machine takes the whole overlap for the first requests, the next rotation shows the same.
    do {
      old = next
      const args = ['token', 'rotate', '-', '--overlap', '2s', '--json', '--database', database.url]
      const rotated = JSON.parse((await runPlantstore(args, { stdin: old })).stdout)
      next = rotated.token
      endMs = Date.parse(rotated.oldEnds)
      during = [...(await codes(old)), ...(await codes(next))]
    } while (Date.now() >= endMs)
    const last = await until('the old token ended', async () => {
      const seen = await codes(old)
      if (Date.now() < endMs) expect(seen).toEqual([200, 200])
      return !seen.includes(200) && seen
    })

    expect(during).toEqual([200, 200, 200, 200])
    expect(last).toEqual([40102, 40102])
    expect(await codes(next)).toEqual([200, 200])
  })
})
