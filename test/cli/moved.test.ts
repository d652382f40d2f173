import { describe, expect, test } from 'bun:test'
import { copyFileSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { startExecutable } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'

/** What can happen to the file of a database while a server has it open. */
const LOSSES: Readonly<Record<string, (database: string) => void>> = {
  'moved away': (database) => renameSync(database, `${database}.moved`),
  deleted: (database) => {
    for (const end of ['', '-wal', '-shm']) rmSync(database + end)
  },
  replaced: (database) => {
    copyFileSync(database, `${database}.copy`)
    renameSync(`${database}.copy`, database)
  },
}

describe('a database that is lost while a server runs', () => {
  test.each(Object.entries(LOSSES))('(%s) acknowledges nothing any more, and ends with 3', async (_, lose) => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    const server = await startExecutable(['serve', '--listen', '127.0.0.1:0', '--database', database])
    await using _server = { [Symbol.asyncDispose]: server.kill }
    const create = (id: number) =>
      fetch(`${server.url}/plants`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ id, name: 'Fern' }),
      })
    expect((await create(1)).status).toBe(200)

    lose(database)
    const answer = await create(2)

    expect([answer.status, await answer.json()]).toEqual([
      503,
      { error: 50302, message: expect.stringContaining('unknown') },
    ])
    expect(await server.ended()).toBe(3)
    const fatal = server
      .stdout()
      .split('\n')
      .filter((line) => line.includes('"level":"fatal"'))
    expect(fatal).toEqual([expect.stringContaining('was moved, replaced or deleted')])
  })

  test('is not written to when the server ends', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    const backup = readFileSync(database)
    const server = await startExecutable(['serve', '--listen', '127.0.0.1:0', '--database', database])
    await using _server = { [Symbol.asyncDispose]: server.kill }
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    await fetch(`${server.url}/plants`, { method: 'POST', headers, body: '{"id":1,"name":"Fern"}' })

    renameSync(database, `${database}.moved`)
    await Bun.write(database, backup)
    await fetch(`${server.url}/plants`, { method: 'POST', headers, body: '{"id":2,"name":"Ivy"}' })

    expect(await server.ended()).toBe(3)
    expect(readFileSync(database).equals(backup)).toBe(true)
    expect(readdirSync(folder.path)).toContain('plantstore.db.moved')
  })
})
