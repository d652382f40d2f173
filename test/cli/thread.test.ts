import { describe, expect, test } from 'bun:test'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'

describe('a server whose thread that writes has ended', () => {
  test('acknowledges nothing, says why in one line, and ends with 3', async () => {
    using folder = makeFolder()
    const database = join(folder.path, 'plantstore.db')
    const token = await createTokenIn(database)
    await using server = await serve(database)
    const create = (id: number) => server.request('POST', '/plants', { token, body: { id, name: 'Fern' } })
    // The thread opens its connection with the first write. It cannot, and throws: nobody catches that.
    rmSync(`${database}-wal`)
    mkdirSync(`${database}-wal`)

    const answers = await Promise.all([1, 2, 3].map(create))

    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503])
    for (const answer of answers) expect(await answer.json()).toEqual({ error: 50302, message: expect.any(String) })
    expect(await server.ended()).toBe(3)
    const fatal = server
      .stdout()
      .split('\n')
      .filter((line) => line.includes('"level":"fatal"'))
    expect(fatal).toEqual([expect.stringContaining('the thread that writes has failed')])
    expect(server.stderr()).toBe('')
  })
})
