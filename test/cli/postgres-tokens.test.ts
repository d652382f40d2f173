import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { makeDatabase, POSTGRES_SERVER } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { makeFileToken } from '../support/tokens-file.ts'
import { until } from '../support/until.ts'
import { done } from './support/answers.ts'
import { codeOf } from './support/service-client.ts'

describe.concurrent.skipIf(lacks(POSTGRES_SERVER))('two servers on one PostgreSQL database', () => {
  test('accept only the tokens of their own files, and neither one after its user is blocked', async () => {
    await using database = await makeDatabase()
    using folder = makeFolder()
    const paths = [join(folder.path, 'one'), join(folder.path, 'two')] as const
    const tokens = paths.map((path) => {
      const { text, line } = makeFileToken()
      writeFileSync(path, line)
      return text
    })
    await using one = await serve(database.url, ['--tokens-file', paths[0]])
    await using two = await serve(database.url, ['--tokens-file', paths[1]])
    const codes = () =>
      Promise.all([one, two].map((server) => Promise.all(tokens.map((token) => codeOf(server, token)))))

    expect(await codes()).toEqual([
      [200, 40102],
      [40102, 200],
    ])
    const blocked = await runPlantstore(['user', 'block', 'me', '--database', database.url])
    expect(blocked).toEqual(done('Blocked user me.'))
    // The promise is about time alone: a request meanwhile would make the server learn of the change.
    await Bun.sleep(TOKEN_CHANGES_SEEN_WITHIN_MS)

    expect(await codes()).toEqual([
      [40102, 40102],
      [40102, 40102],
    ])
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
