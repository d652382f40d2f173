import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { openStore } from '../../src/store/open.ts'
import { POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { POSTGRES_SERVER } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { until } from '../support/until.ts'
import { refusal, refusalWith } from './support/answers.ts'
import { ACROSS, copy, fill, IDS, TEXTS, WAYS } from './support/copies.ts'
import { answerOf } from './support/service-client.ts'

/** The last line of a copy. */
const endOf = (from: string) => `End the servers that use ${from}: the copy has none of their later writes\\.\n`

/** More than two batches. */
const MORE = 4500

/** The answers of a server to these tokens. */
async function answersOf(database: string, tokens: Readonly<Record<string, string>>) {
  await using server = await serve(database)
  const answers: Record<string, unknown> = {}
  for (const [name, token] of Object.entries(tokens)) {
    const list = await server.request('GET', '/plants', { token })
    const create = await server.request('POST', '/plants', { token, body: '{"id":5,"name":"Fern"}' })
    answers[name] = [list.status, await list.text(), create.status]
  }
  expect(await server.end()).toBe(0)
  return answers
}

describe('copy', () => {
  test.each(WAYS)(
    '$way copies everything exactly, and back, and tokens are valid as they were',
    async ({ from, to }) => {
      await using source = await from.make()
      await using target = await to.make()
      await using back = await from.make()
      const tokens = await fill(source.database, MORE)
      const before = await source.dump()

      const there = await copy(source.database, target.database)
      const again = await copy(target.database, back.database, '--json')

      const plants = 2 * IDS.length + TEXTS.length + MORE
      const sha256 = /SHA-256 ([0-9a-f]{64})\.\n/.exec(there.stderr)?.[1] ?? ''
      const told = (one: string, other: string) =>
        expect.stringMatching(
          new RegExp(
            `^Copied 3 users, 8 tokens and ${plants} plants from ${one} to ${other}: SHA-256 ${sha256}\\.\n${endOf(one)}$`,
          ),
        )
      expect([there, again]).toEqual([
        { stdout: `${target.database}\n`, stderr: told(source.database, target.database), exitCode: 0 },
        { stdout: expect.any(String), stderr: told(target.database, back.database), exitCode: 0 },
      ])
      const places = { from: target.database, to: back.database }
      expect(JSON.parse(again.stdout)).toEqual({ ...places, users: 3, tokens: 8, plants, sha256 })
      expect(await source.dump()).toEqual(before)
      expect(await target.dump()).toEqual(before)
      expect(await back.dump()).toEqual(before)
      expect(before?.lastIds).toEqual([[expect.any(BigInt), 9n]])
      expect((await runPlantstore(['check', '--database', target.database])).exitCode).toBe(0)
      const answers = await answersOf(target.database, tokens)
      expect(answers).toEqual(await answersOf(source.database, tokens))
      expect(answers).toMatchObject({
        write: [200, expect.stringContaining('Größe 🌱'), 409],
        read: [200, expect.any(String), 403],
        expired: [401, expect.any(String), 401],
        revoked: [401, expect.any(String), 401],
        rotated: [401, expect.any(String), 401],
        blocked: [401, expect.any(String), 401],
        other: [200, expect.any(String), 409],
      })
      // The next identifiers were never used in either store.
      const made = await runPlantstore(['token', 'create', '--user', 'new', '--database', target.database])
      expect(made.stderr).toContain('Created token 10 of user new ')
    },
  )

  test.each(ACROSS)('$way copies an empty store', async ({ from, to }) => {
    await using source = await from.make()
    await using target = await to.make()
    await (await openStore(source.database, () => {})).close()

    const { stderr, exitCode } = await copy(source.database, target.database)

    expect(stderr).toMatch(/^Copied 0 users, 0 tokens and 0 plants from .+: SHA-256 [0-9a-f]{64}\.\n/)
    expect(exitCode).toBe(0)
    expect((await runPlantstore(['check', '--database', target.database])).exitCode).toBe(0)
  })

  test.skipIf(lacks(POSTGRES_SERVER))(
    'fills an empty PostgreSQL database beside its server, but no other',
    async () => {
      await using source = await SQLITE.make()
      await using target = await POSTGRES.make()
      const { write: token } = await fill(source.database)
      await using server = await serve(target.database)
      const list = () => answerOf(server.request('GET', '/plants?limit=1', { token }))
      expect(await list()).toMatchObject({ status: 401 })

      expect(await copy(source.database, target.database)).toMatchObject({ exitCode: 0 })
      const copied = await target.dump()
      const again = await copy(source.database, target.database)

      await until('the server knows the copied tokens', async (see) => see(await list()).status === 200)
      expect(again).toEqual(refusal(3, `The database ${target.database} is not empty: name another one.`))
      expect({ ...(await target.dump()), tokens: [] }).toEqual({ ...copied, tokens: [] } as never)
      expect(await server.end()).toBe(0)
    },
  )

  test.skipIf(lacks(POSTGRES_SERVER))('takes passwords from files, and tells none', async () => {
    await using source = await SQLITE.make()
    await using target = await POSTGRES.make()
    await using back = await SQLITE.make()
    await fill(source.database)
    const file = join(dirname(source.database), 'password')
    await Bun.write(file, 'Sesame-99\n')
    const withPassword = target.database.replace('plantstore@', 'plantstore:Sesame-88@')

    const answers = [
      await copy(source.database, withPassword, '--to-password-file', file),
      await copy(withPassword, back.database, '--from-password-file', file, '--snapshot'),
      await copy(source.database, withPassword),
    ]

    expect(answers.map(({ exitCode }) => exitCode)).toEqual([0, 0, 3])
    expect(JSON.stringify(answers)).not.toContain('Sesame')
    expect(await back.dump()).toEqual(await source.dump())
  })

  test.skipIf(lacks(POSTGRES_SERVER))('copies from PostgreSQL beside a server, and says what that loses', async () => {
    await using source = await POSTGRES.make()
    await using target = await SQLITE.make()
    await using snapshot = await SQLITE.make()
    const { write } = await fill(source.database)
    await using server = await serve(source.database)

    const copied = await copy(source.database, target.database)
    const taken = await copy(source.database, snapshot.database, '--snapshot')
    const before = await source.dump()
    const later = await server.request('POST', '/plants', { token: write, body: '{"id":6,"name":"Fern"}' })

    expect([copied.exitCode, taken.exitCode, later.status]).toEqual([0, 0, 200])
    expect(copied.stderr).toMatch(new RegExp(`${endOf(source.database)}$`))
    expect(taken.stderr).toMatch(
      /^The copy will not contain later writes to (.+)\.\nCopied 3 users, .+ from \1 to .+\.\n$/,
    )
    expect([await target.dump(), await snapshot.dump()]).toEqual([before, before])
    expect(await server.end()).toBe(0)
  })

  test.skipIf(lacks(POSTGRES_SERVER))('refuses a missing PostgreSQL store, and to copy one to itself', async () => {
    await using place = await POSTGRES.make()
    using folder = makeFolder()

    expect(await copy(place.database, join(folder.path, 'copy.db'))).toEqual(refusalWith(3, 'There is no '))
    expect(readdirSync(folder.path)).toEqual([])
    expect(await place.dump()).toBeUndefined()
    await fill(place.database)
    const before = await place.dump()
    expect(await copy(place.database, place.database)).toEqual(
      refusal(2, 'A store cannot be copied to itself: name another one.'),
    )
    expect(await place.dump()).toEqual(before)
  })
})
