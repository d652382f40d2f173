import { describe, expect, test } from 'bun:test'
import { TOKEN_CHANGES_SEEN_WITHIN_MS } from '../../src/domain/store.ts'
import { openStore } from '../../src/store/open.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeDatabase, OWN_POSTGRES, POSTGRES_SERVER, startCluster } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { SLACK_MS } from '../support/slack.ts'
import { createToken, createTokenIn } from '../support/tokens.ts'
import { FOREIGN_VARIABLES } from './support/foreign-variables.ts'
import { createPlant, listNames, statusOf } from './support/service-client.ts'

describe.skipIf(lacks(POSTGRES_SERVER))('servers on one PostgreSQL database', () => {
  test('and token create say when they created the store', async () => {
    await using database = await makeDatabase({ isEmpty: true })
    const create = () => runPlantstore(['token', 'create', '--user', 'me', '--database', database.url])
    const [first, second] = [await create(), await create()]
    await using server = await serve(database.url)

    const [, where] = /^Created a new, empty store: (postgres:\/\/\S+)\.\n/.exec(first.stderr) ?? []
    expect(new URL(where ?? '').pathname).toBe(new URL(database.url).pathname)
    expect(second.stderr).not.toContain('Created a new, empty store')
    expect(server.stdout()).toContain(`"database":"${where}"`)
    expect(server.stdout()).not.toContain('created')
  })

  test('show at once what was written through another one, and end in good order', async () => {
    await using database = await makeDatabase({ isEmpty: true })
    const token = await createTokenIn(database.url)
    await using one = await serve(database.url)
    await using two = await serve(database.url)

    for (let id = 1; id <= 20; id++) {
      const [writer, reader] = id % 2 === 0 ? [one, two] : [two, one]
      expect(await createPlant(writer, token, id)).toBe(200)
      expect(await listNames(reader, token)).toEqual(Array.from({ length: id }, (_, index) => `Fern ${index + 1}`))
      expect(await createPlant(reader, token, id)).toBe(409)
    }
    expect((await one.request('DELETE', '/plants/1', { token })).status).toBe(204)
    expect((await two.request('DELETE', '/plants/1', { token })).status).toBe(404)

    expect([await one.end(), await two.end()]).toEqual([0, 0])
  })

  test('refuse a token that was revoked, in whatever process, within the time that is promised', async () => {
    await using database = await makeDatabase()
    await using one = await serve(database.url)
    await using two = await serve(database.url)
    for (let round = 0; round < 5; round++) {
      const token = await createTokenIn(database.url)
      const id = JSON.parse((await runPlantstore(['token', 'list', '--json', '--database', database.url])).stdout).at(
        -1,
      ).id
      for (const server of [one, two])
        for (let count = 0; count < 3; count++) expect(await statusOf(server, '/plants', token)).toBe(200)

      const { exitCode } = await runPlantstore(['token', 'revoke', String(id), '--database', database.url])
      const revokedMs = performance.now()

      expect(exitCode).toBe(0)
      for (const server of [one, two]) {
        while ((await statusOf(server, '/plants?limit=1', token)) === 200) await Bun.sleep(5)
      }
      expect(performance.now() - revokedMs).toBeLessThan(TOKEN_CHANGES_SEEN_WITHIN_MS + SLACK_MS)
    }
  })

  test('refuse a token that was revoked elsewhere in the first request after that time, having asked for nothing meanwhile', async () => {
    await using database = await makeDatabase()
    const store = await openStore(database.url, () => {})
    const { text: token, id } = await createToken(store)
    await using server = await serve(database.url)
    for (let count = 0; count < 3; count++) expect(await statusOf(server, '/plants', token)).toBe(200)

    expect(await store.revokeTokens({ id }, Date.now())).toBe(1)
    await store.close()
    // The promise is about time alone: whatever were asked meanwhile would make the server learn of it.
    await Bun.sleep(TOKEN_CHANGES_SEEN_WITHIN_MS)

    expect(await statusOf(server, '/plants', token)).toBe(401)
  })

  test('take nothing from the environment but their own variables', async () => {
    await using database = await makeDatabase()
    const token = await createTokenIn(database.url)

    await using server = await serve(database.url, [], { env: FOREIGN_VARIABLES })

    expect(await createPlant(server, token, 1)).toBe(200)
    expect(await listNames(server, token)).toEqual(['Fern 1'])
  })
})

describe.skipIf(lacks(OWN_POSTGRES))('a server whose database', () => {
  test('is not there listens, is not ready, and is ready as soon as it is there', async () => {
    using cluster = await startCluster()
    cluster.stop('fast')

    await using server = await serve(cluster.url, ['--first-token'])
    expect([await statusOf(server, '/healthz'), await statusOf(server, '/readyz')]).toEqual([200, 503])
    const stranger = await server.request('GET', '/plants', { token: 'plst_0' })
    expect(stranger.status).toBe(401)
    cluster.start()
    while ((await statusOf(server, '/readyz')) !== 200) await Bun.sleep(20)
    while (!server.stderr().includes('/plants/1')) await Bun.sleep(20)

    const token = /plst_\w+/.exec(server.stderr())?.[0] ?? ''
    expect(await createPlant(server, token, 1)).toBe(200)
    cluster.stop('immediate')
    const [refused] = await Promise.all([server.request('POST', '/plants', { token, body: { id: 2, name: 'Ivy' } })])
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    while ((await statusOf(server, '/readyz')) !== 503) await Bun.sleep(20)
    expect(await statusOf(server, '/healthz')).toBe(200)
    cluster.start()
    while ((await statusOf(server, '/readyz')) !== 200) await Bun.sleep(20)
    expect(await listNames(server, token)).toContain('Fern 1')
    expect(await server.end()).toBe(0)
  })
})
