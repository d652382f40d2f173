import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { queryAll, runSql } from '../store/sqlite/files.ts'
import { serve } from '../support/executable.ts'
import { MEMORY } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import { done } from './support/answers.ts'
import { makeDatabase } from './support/database.ts'
import { statusOf } from './support/service-client.ts'

const MANY_PLANTS = 50_000

/** A database with a token of each of these users. */
async function makeUsers(...users: readonly string[]) {
  const made = makeDatabase()
  for (const user of users) await createTokenIn(made.database, user)
  return made
}

const SECRET_NAMES = Array.from({ length: 60 }, (_, id) => `secret-plant-${id}-${'x'.repeat(id * 100)}`)

const contentsIn = (folder: string) => readdirSync(folder).map((name) => readFileSync(join(folder, name), 'latin1'))

describe('user delete', () => {
  test.each([
    ['at rest', true],
    ['beside a server, once the server has ended', false],
  ])('leaves no byte of the plants in any file, %s', async (_, isAtRest) => {
    using made = makeDatabase()
    const token = await createTokenIn(made.database, 'secret-user')
    await using server = await serve(made.database)
    const statuses = new Set<number>()
    for (const [id, name] of SECRET_NAMES.entries()) {
      const body = { id, name, tag: 'secret-tag' }
      statuses.add((await server.request('POST', '/plants', { token, body })).status)
    }
    if (isAtRest) await server.end()
    const before = contentsIn(made.folder).join()
    const { exitCode } = await made.run('user', 'delete', 'secret-user', '--yes')

    expect([exitCode, await server.end()]).toEqual([0, 0])
    expect([...statuses]).toEqual([200])
    expect(before).toContain('secret-plant')
    expect(contentsIn(made.folder).filter((bytes) => bytes.includes('secret-'))).toEqual([])
  })

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'ends by %s between two batches, says how far it came, and deletes the rest when it is run again',
    async (signal) => {
      using made = await makeUsers('gone', 'stays')
      const { database } = made
      addPlants(database, MANY_PLANTS, { user: 'gone' })
      const { child, ended } = made.start('', 'user', 'delete', 'gone', '--yes', '--json')
      const firstId = () => queryAll(database, 'select min(id) from plants')[0]?.[0]
      await until('the first plants are deleted', () => firstId() !== 1n)
      child.kill(signal)
      const { stdout, stderr, exitCode } = await ended
      const [gone] = await made.json('user', 'list')
      runSql(database, `delete from plants where id <= ${MANY_PLANTS - 2}`)
      const again = await made.run('user', 'delete', 'gone', '--yes', '--json')

      expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: signal === 'SIGINT' ? 130 : 143 })
      expect(stderr).toEndWith(
        `Stopped by ${signal}: all tokens of user gone and ${MANY_PLANTS - gone.plants} of ${MANY_PLANTS} plants are deleted. Run the same command again to delete the rest.\n`,
      )
      expect(gone).toMatchObject({ user: 'gone', tokens: 0 })
      expect(gone.plants).toBeGreaterThan(0)
      expect(again).toMatchObject({ stderr: expect.stringContaining('with 0 tokens and 2 plants.\n'), exitCode: 0 })
      expect(JSON.parse(again.stdout)).toEqual({ user: 'gone', tokens: 0, plants: 2 })
      expect(await made.json('user', 'list')).toMatchObject([{ user: 'stays', plants: 0, tokens: 1 }])
    },
  )

  test('ends when a server refuses the tokens, also if it has just answered a cached list', async () => {
    using made = makeDatabase(MEMORY)
    await using server = await serve(made.database)
    // After a list the server trusts its caches for some milliseconds. Many users, because a slow exit can hide this.
    for (const user of Array.from({ length: 10 }, (_, index) => `user-${index}`)) {
      const token = await createTokenIn(made.database, user)
      let isDeleting = true
      const deleting = made.run('user', 'delete', user, '--yes').finally(() => {
        isDeleting = false
      })
      while (isDeleting) await statusOf(server, '/plants?limit=5', token)

      expect(await deleting).toEqual(done(`Deleted user ${user} with 1 token and 0 plants.`))
      expect(await statusOf(server, '/plants?limit=5', token)).toBe(401)
    }
  })
})
