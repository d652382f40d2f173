import { describe, expect, test } from 'bun:test'
import { runPlantstore } from '../support/executable.ts'
import { makeDatabase } from './support/database.ts'

const TEXT = /^plst_[0-9A-Za-z]{49}\n$/

describe.concurrent('token create', () => {
  test('prints only the token on stdout, and the rest on stderr', async () => {
    using made = makeDatabase()
    // The path of the database is relative here, and absolute in the answer.
    const first = await runPlantstore(['token', 'create', '--user', 'me'], { cwd: made.folder })
    const second = await made.run('token', 'create', '--user', 'me', '--scope', 'read')

    expect([first, second]).toEqual([
      {
        stdout: expect.stringMatching(TEXT),
        stderr: `Created a new, empty store: ${made.database}.\nCreated user me.\nCreated token 1 of user me (write). It is shown only once.\n`,
        exitCode: 0,
      },
      {
        stdout: expect.stringMatching(TEXT),
        stderr: 'Created token 2 of user me (read). It is shown only once.\n',
        exitCode: 0,
      },
    ])
    expect(first.stdout).not.toBe(second.stdout)
  })

  test('prints with --json the token and the fields that token list prints, by default a write token for good', async () => {
    using made = makeDatabase()
    const tokens = [
      await made.json('token', 'create', '--user', 'me'),
      await made.json('token', 'create', '--user', 'me', '--scope', 'read', '--label', 'laptop'),
    ]

    const printed = { token: expect.stringMatching(/^plst_/), user: 'me', created: expect.any(String), expires: null }
    expect(tokens).toEqual([
      { ...printed, id: 1, scope: 'write', label: null },
      { ...printed, id: 2, scope: 'read', label: 'laptop' },
    ])
    expect(await made.tokens()).toEqual(
      tokens.map(({ token: _, ...fields }) => ({ ...fields, lastUsed: null, state: 'active', replacedBy: null })),
    )
  })

  test('says once that it created the database, however many commands create it at the same time', async () => {
    using made = makeDatabase()
    const answers = await Promise.all([1, 2, 3, 4].map(() => made.run('token', 'create', '--user', 'me')))

    expect(answers.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0])
    expect(answers.filter(({ stderr }) => stderr.includes('Created a new, empty store'))).toHaveLength(1)
  })
})
