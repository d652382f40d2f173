import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { IMPORT_MAX_BYTES } from '../../src/cli/commands/token-import.ts'
import { type DatabaseKind, POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { POSTGRES_SERVER } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { amongThousand, makeTokenLine, WRONG_LINES } from '../support/token-lines.ts'
import { createTokenIn } from '../support/tokens.ts'
import { done, refusal, refusalWith } from './support/answers.ts'
import { makeDatabase } from './support/database.ts'
import { codeOf } from './support/service-client.ts'

const KINDS: readonly DatabaseKind[] = [SQLITE, ...(lacks(POSTGRES_SERVER) ? [] : [POSTGRES])]
const YEAR_2099 = '2099-01-31T00:00:00.000Z'

/** Imports lines, or these bytes, on stdin. */
const importOn = (
  database: string,
  lines: readonly string[] | Uint8Array<ArrayBuffer>,
  ...flags: readonly string[]
) => {
  const stdin = lines instanceof Uint8Array ? lines : lines.map((line) => `${line}\n`).join('')
  return runPlantstore(['token', 'import', '-', '--database', database, ...flags], { stdin })
}

const makeImport = () => {
  const made = makeDatabase()
  return {
    ...made,
    importLines: (...args: [readonly string[] | Uint8Array<ArrayBuffer>, ...string[]]) =>
      importOn(made.database, ...args),
    list: async () => JSON.parse((await made.run('token', 'list', '--json')).stdout),
  }
}

const told = (created: number, left: number) =>
  `Created ${created} token${created === 1 ? '' : 's'}, and left ${left} token${left === 1 ? '' : 's'} as they were.`

describe.concurrent('token import', () => {
  test('creates the tokens of a file with comments, tabs and CRLF, their users, and a missing database', async () => {
    using made = makeImport()
    const path = join(made.folder, 'tokens')
    const [write, read, ended] = [
      makeTokenLine('me', 'write', "the gardener's 🌱 app of 2027"),
      makeTokenLine('you', 'read', '2099-01-31 2nd dashboard'),
      makeTokenLine('me', 'write', '2020-01-31T18:00:00Z'),
    ]
    const lines = ['# tokens', '', '  # more', write.line.replace(/^(\S+) (\S+) /, '$1\t$2\t'), `  ${read.line}`]
    writeFileSync(path, [...lines, ended.line, ''].join('\r\n'))
    const imported = await made.run('token', 'import', path)
    await using server = await serve(made.database)

    expect(imported).toEqual(done(`Created a new, empty store: ${made.database}.\nCreated 2 users.\n${told(3, 0)}`))
    expect(await made.list()).toMatchObject([
      { id: 1, user: 'me', scope: 'write', label: "the gardener's 🌱 app of 2027", expires: null, state: 'active' },
      { id: 2, user: 'you', scope: 'read', label: '2nd dashboard', expires: YEAR_2099, state: 'active' },
      { id: 3, user: 'me', scope: 'write', label: null, expires: '2020-01-31T18:00:00.000Z', state: 'expired' },
    ])
    const tokens = [write, read, ended, makeTokenLine()].map(({ text }) => text)
    expect(await Promise.all(tokens.map((token) => codeOf(server, token)))).toEqual([200, 200, 40102, 40102])
    const create = { token: read.text, body: { id: 1, name: 'Fern' } }
    expect((await server.request('POST', '/plants', create)).status).toBe(403)
  })

  test.each(KINDS)(
    'of a thousand lines makes a running server accept their tokens at once, on $name',
    async ({ make }) => {
      await using made = await make()
      await using server = await serve(made.database)
      const tokens = Array.from({ length: 1000 }, (_, index) => makeTokenLine(`user-${index}`))
      const texts = [tokens[0]?.text ?? '', tokens[999]?.text ?? '']
      const codes = async () => [await codeOf(server, texts[0] ?? ''), await codeOf(server, texts[1] ?? '')]
      const before = await codes()
      const lines = tokens.map(({ line }) => line)
      const imported = await importOn(made.database, lines)

      expect([before, await codes()]).toEqual([
        [40102, 40102],
        [200, 200],
      ])
      expect(imported).toEqual(done(`Created 1000 users.\n${told(1000, 0)}`))
      expect(await importOn(made.database, lines)).toEqual(done(told(0, 1000)))
    },
  )

  test('leaves a token alone that exists with the user and the scope, whatever else the line says', async () => {
    using made = makeImport()
    const [plain, ended, rotated] = [
      makeTokenLine('me', 'read'),
      makeTokenLine('me', 'write', '2020-01-31 old'),
      makeTokenLine('me', 'write'),
    ]
    await made.importLines([plain.line, ended.line, rotated.line])
    await made.run('token', 'rotate', '3', '--overlap', '1h')
    const before = await made.list()
    const added = makeTokenLine('you', 'write')
    const lines = [`${plain.line} 2099-01-31 new`, `me write ${ended.hash} 2099-01-31`, rotated.line, added.line]
    const { stdout, ...rest } = await made.importLines(lines, '--json')
    const after = await made.list()

    expect(rest).toEqual({ stderr: `Created 1 user.\n${told(1, 3)}\n`, exitCode: 0 })
    expect(JSON.parse(stdout)).toEqual({ lines: 4, created: 1, skipped: 3, createdUsers: 1 })
    expect(after.slice(0, before.length)).toEqual(before)
    expect(after.slice(before.length)).toMatchObject([{ user: 'you' }])
  })

  test.each([
    ['another user', 'you', 'write', false, ', of user me with scope write: correct the line.'],
    ['another scope', 'me', 'read', false, ', of user me with scope write: correct the line.'],
    ['its revocation', 'me', 'write', true, ', which is revoked: delete the line.'],
  ])('refuses all lines because of %s of one token, and names the line', async (_, user, scope, isRevoked, said) => {
    using made = makeImport()
    const { line, hash } = makeTokenLine('me', 'write')
    await made.importLines([line])
    if (isRevoked) await made.run('token', 'revoke', '1')
    const before = await made.list()
    const imported = await made.importLines([makeTokenLine('they').line, `${user} ${scope} ${hash}`])

    expect(imported).toEqual(refusal(1, `Line 2 of stdin has the hash of token 1${said} Nothing was created.`))
    expect(await made.list()).toEqual(before)
    expect((await made.run('user', 'list', '--json')).stdout).not.toContain('they')
  })

  test('creates tokens of a blocked user, who stays blocked', async () => {
    using made = makeImport()
    await createTokenIn(made.database, 'me')
    await made.run('user', 'block', 'me')

    expect(await made.importLines([makeTokenLine('me').line])).toEqual(done(told(1, 0)))
    expect(await made.list()).toMatchObject([{ state: 'blocked' }, { state: 'blocked' }])
  })

  test.each(WRONG_LINES)('refuses %s among a thousand lines, and names the line', async (_, line, said) => {
    const number = 1 + Math.floor(Math.random() * 1000)
    using made = makeImport()
    const answer = await made.importLines(amongThousand(line, number))

    expect(answer).toEqual(refusalWith(2, `Line ${number} of stdin${said}`))
    expect(answer.stderr).not.toContain('plst_')
    expect(existsSync(made.database)).toBe(false)
  })

  test.each([
    [
      'two lines with one hash',
      amongThousand('me read sha256:'.padEnd(79, '0'), 17).with(899, 'you read sha256:'.padEnd(80, '0')),
      'Line 900 of stdin has the same hash as line 17: delete one of them.',
    ],
    ['an empty text', [], 'There is no line feed at the end of stdin'],
    ['a last line without its end', Buffer.from(makeTokenLine().line), 'There is no line feed at the end of stdin'],
    ['a text that is not UTF-8', Buffer.from('# \xff\n', 'latin1'), 'The text of stdin is not UTF-8.'],
    ['a text of more than 1 MiB', Buffer.alloc(IMPORT_MAX_BYTES + 1, '\n'), 'The text of stdin has more than 1048576'],
  ])('refuses %s with exit code 2, and makes no database', async (_, lines, said) => {
    using made = makeImport()

    expect(await made.importLines(lines)).toEqual(refusalWith(2, said))
    expect(existsSync(made.database)).toBe(false)
  })

  test('takes a text of 1 MiB, and one without a token', async () => {
    using made = makeImport()
    const line = `${makeTokenLine().line}\n`
    await made.importLines(['# none'])

    expect(await made.importLines(['# none'])).toEqual(done(told(0, 0)))
    expect(await made.importLines(Buffer.from(line.padEnd(IMPORT_MAX_BYTES, '\n')))).toEqual(
      done(`Created 1 user.\n${told(1, 0)}`),
    )
  })

  test('exits with 1 if it cannot read the file', async () => {
    using made = makeImport()
    const missing = join(made.folder, 'missing')
    const folder = join(made.folder, 'folder')
    mkdirSync(folder)

    expect(await made.run('token', 'import', missing)).toEqual(
      refusalWith(1, `Cannot read ${missing}: there is no such`),
    )
    expect(await made.run('token', 'import', folder)).toEqual(
      refusalWith(1, `Cannot read ${folder}: it is a directory`),
    )
    expect(existsSync(made.database)).toBe(false)
  })
})
