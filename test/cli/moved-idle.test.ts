import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'

describe('a database that is lost before a server has written anything', () => {
  test.each<[loss: string, lose: (database: string) => void, lists: number]>([
    ['moved away', (database) => renameSync(database, `${database}.moved`), 0],
    ['moved away', (database) => renameSync(database, `${database}.moved`), 1],
    ['deleted', (database) => rmSync(database), 0],
    ['deleted', (database) => rmSync(database), 1],
  ])('(%s) is not made anew when the server ends, in good order', async (_, lose, lists) => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    await using server = await serve(database)
    for (let list = 0; list < lists; list++) {
      expect((await server.request('GET', '/plants', { token })).status).toBe(200)
    }

    lose(database)
    const exitCode = await server.end()

    // It may have noticed or not.
    expect([0, 3]).toContain(exitCode)
    expect(server.stderr()).toBe('')
    expect(readdirSync(folder.path)).not.toContain('plantstore.db')
  })

  test('(replaced) has nothing written into what took its place', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    const backup = readFileSync(database)
    await using server = await serve(database)

    await Bun.write(`${database}.backup`, backup)
    renameSync(`${database}.backup`, database)
    const answer = await server.request('POST', '/plants', { token, body: { id: 1, name: 'Fern' } })

    expect([answer.status, await answer.json()]).toEqual([503, { error: 50302, message: expect.any(String) }])
    expect(await server.ended()).toBe(3)
    expect(readFileSync(database).equals(backup)).toBe(true)
  })
})
