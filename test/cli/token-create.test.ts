import { describe, expect, test } from 'bun:test'
import { crc32 } from 'node:zlib'
import { runPlantstore } from '../support/executable.ts'
import { makeDatabase } from './support/database.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const CHECKSUM_LENGTH = 6

/** Computed here once more, because scanners elsewhere compute it from the format alone. */
function checksum(secret: string): string {
  let text = ''
  for (let rest = crc32(secret); text.length < CHECKSUM_LENGTH; rest = Math.floor(rest / BASE62.length)) {
    text = BASE62.charAt(rest % BASE62.length) + text
  }
  return text
}

type Run = ReturnType<typeof makeDatabase>['run']
const create = (run: Run, ...args: readonly string[]) => run('token', 'create', '--user', 'me', ...args)
const list = async (run: Run) => JSON.parse((await run('token', 'list', '--json')).stdout)

describe.concurrent('token create', () => {
  test('prints only the token on stdout, with its checksum, and the rest on stderr', async () => {
    using made = makeDatabase()
    // The path of the database is relative here, and absolute in the answer.
    const first = await runPlantstore(['token', 'create', '--user', 'me'], { cwd: made.folder })
    const second = await create(made.run, '--scope', 'read')

    for (const { stdout, exitCode } of [first, second]) {
      const [, secret = '', end] = /^plst_([0-9A-Za-z]{43})([0-9A-Za-z]{6})\n$/.exec(stdout) ?? []
      expect([end, exitCode]).toEqual([checksum(secret), 0])
    }
    expect(first.stdout).not.toBe(second.stdout)
    expect([first.stderr, second.stderr]).toEqual([
      `Created a new, empty store: ${made.database}.\nCreated user me.\nCreated token 1 of user me (write). It is shown only once.\n`,
      'Created token 2 of user me (read). It is shown only once.\n',
    ])
  })

  test('prints with --json the token and the fields that token list prints, by default a write token for good', async () => {
    using made = makeDatabase()
    const answers = [
      await create(made.run, '--json'),
      await create(made.run, '--json', '--scope', 'read', '--label', 'laptop'),
    ]
    const tokens = answers.map(({ stdout }) => JSON.parse(stdout))

    const printed = { token: expect.stringMatching(/^plst_[0-9A-Za-z]{49}$/), user: 'me', expires: null }
    expect(tokens).toEqual([
      { ...printed, id: 1, scope: 'write', label: null, created: tokens[0].created },
      { ...printed, id: 2, scope: 'read', label: 'laptop', created: tokens[1].created },
    ])
    expect(await list(made.run)).toEqual(
      tokens.map(({ token: _, ...fields }) => ({ ...fields, lastUsed: null, state: 'active', replacedBy: null })),
    )
  })

  test('says once that it created the database, however many commands create it at the same time', async () => {
    using made = makeDatabase()
    const answers = await Promise.all(Array.from({ length: 4 }, () => create(made.run)))

    expect(answers.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0])
    expect(answers.filter(({ stderr }) => stderr.includes('Created a new, empty store'))).toHaveLength(1)
  })
})
