import { describe, expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { IMPORT_MAX_BYTES } from '../../src/cli/commands/token-import.ts'
import { type DatabaseKind, POSTGRES, SQLITE } from '../support/empty-databases.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { POSTGRES_SERVER } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { makeTokenLine } from '../support/token-lines.ts'
import { done, refusal, refusalWith } from './support/answers.ts'
import { makeDatabase } from './support/database.ts'
import { codesOf } from './support/service-client.ts'

const KINDS: readonly DatabaseKind[] = [SQLITE, ...(lacks(POSTGRES_SERVER) ? [] : [POSTGRES])]
const YEAR_2099 = '2099-01-31T00:00:00.000Z'

const makeImport = () => {
  const made = makeDatabase()
  const feed = (text: string | Uint8Array<ArrayBuffer>, ...flags: readonly string[]) =>
    made.feed(text, 'token', 'import', '-', ...flags)
  const importLines = (lines: readonly string[], ...flags: readonly string[]) =>
    feed(lines.map((line) => `${line}\n`).join(''), ...flags)
  return { ...made, feed, importLines }
}

const { hash: HASH, line: LINE, text: TOKEN } = makeTokenLine()
const FORM = ' must be: user scope sha256:HEX [expires] [label].'
const TIME = ': the expiry must be a time in UTC'

/** Lines that have an error, and what the refusal of each says after the number of the line. */
const WRONG_LINES: readonly (readonly [what: string, line: string, said: string])[] = [
  ['a user with a slash', `m/e write ${HASH}`, ': the user must be 1 to 64 characters'],
  ['an unknown scope', `me admin ${HASH}`, ': the scope must be one of read, write.'],
  ['no user', `write ${HASH}`, FORM],
  ['a hash without its last digit', `me write ${HASH.slice(0, -1)}`, FORM],
  ['a hash with one digit too many', `me write ${HASH}0`, FORM],
  ['a token instead of its hash', `me write ${TOKEN}`, FORM],
  ['a day that does not exist', `me write ${HASH} 2027-02-30`, TIME],
  ['a time of another zone', `me write ${HASH} 2027-02-28T18:00:00+01:00`, TIME],
  ['a duration instead of a time', `me write ${HASH} 90d label`, TIME],
  ['a label of 201 characters', `me write ${HASH} ${'x'.repeat(201)}`, ': the label must be 1 to 200 characters'],
]

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
    expect(await made.tokens()).toMatchObject([
      { id: 1, user: 'me', scope: 'write', label: "the gardener's 🌱 app of 2027", expires: null, state: 'active' },
      { id: 2, user: 'you', scope: 'read', label: '2nd dashboard', expires: YEAR_2099, state: 'active' },
      { id: 3, user: 'me', scope: 'write', label: null, expires: '2020-01-31T18:00:00.000Z', state: 'expired' },
    ])
    const tokens = [write, read, ended, makeTokenLine()].map(({ text }) => text)
    expect(await codesOf(server, tokens)).toEqual([200, 200, 40102, 40102])
    const create = { token: read.text, body: { id: 1, name: 'Fern' } }
    expect((await server.request('POST', '/plants', create)).status).toBe(403)
  })

  test.each(KINDS)(
    'of a thousand lines makes a running server accept their tokens at once, on $name',
    async ({ make }) => {
      await using made = await make()
      await using server = await serve(made.database)
      const tokens = Array.from({ length: 1000 }, (_, index) => makeTokenLine(`user-${index}`))
      const ends = [tokens[0]?.text ?? '', tokens[999]?.text ?? '']
      const before = await codesOf(server, ends)
      const args = ['token', 'import', '-', '--database', made.database]
      const importAll = () => runPlantstore(args, { stdin: tokens.map(({ line }) => `${line}\n`).join('') })
      const imported = await importAll()

      expect(before).toEqual([40102, 40102])
      expect(await codesOf(server, ends)).toEqual([200, 200])
      expect(imported).toEqual(done(`Created 1000 users.\n${told(1000, 0)}`))
      expect(await importAll()).toEqual(done(told(0, 1000)))
    },
  )

  test('leaves a token alone that exists with the user and the scope, whatever else the line says', async () => {
    using made = makeImport()
    const [plain, ended, added] = [
      makeTokenLine('me', 'read'),
      makeTokenLine('me', 'write', '2020-01-31 old'),
      makeTokenLine('you'),
    ]
    await made.importLines([plain.line, ended.line])
    const before = await made.tokens()
    const lines = [`${plain.line} 2099-01-31 new`, `me write ${ended.hash} 2099-01-31`, added.line]
    const { stdout, ...rest } = await made.importLines(lines, '--json')

    expect(rest).toEqual({ stderr: `Created 1 user.\n${told(1, 2)}\n`, exitCode: 0 })
    expect(JSON.parse(stdout)).toEqual({ lines: 3, created: 1, skipped: 2, createdUsers: 1 })
    expect(await made.tokens()).toEqual([...before, expect.objectContaining({ user: 'you' })])
  })

  test.each([
    ['another user', 'you', false, ', of user me with scope write: correct the line.'],
    ['its revocation', 'me', true, ', which is revoked: delete the line.'],
  ])('refuses all lines because of %s of one token, and names the line', async (_, user, isRevoked, said) => {
    using made = makeImport()
    const { line, hash } = makeTokenLine()
    await made.importLines([line])
    if (isRevoked) await made.run('token', 'revoke', '1')
    const imported = await made.importLines([makeTokenLine('they').line, `${user} write ${hash}`])

    expect(imported).toEqual(refusal(1, `Line 2 of stdin has the hash of token 1${said} Nothing was created.`))
    expect(await made.tokens()).toHaveLength(1)
  })

  test.each(WRONG_LINES)('names a line with %s, and makes no database', async (_, line, said) => {
    using made = makeImport()
    const answer = await made.importLines(['# tokens', makeTokenLine('you').line, line])

    expect(answer).toEqual(refusalWith(2, `Line 3 of stdin${said}`))
    expect(answer.stderr).not.toContain('plst_')
    expect(existsSync(made.database)).toBe(false)
  })

  test.each([
    ['two lines with one hash', `${LINE}\n\n${LINE}\n`, 'Line 3 of stdin has the same hash as line 1: delete one'],
    ['an empty text', '', 'There is no line feed at the end of stdin'],
    ['a last line without its end', LINE, 'There is no line feed at the end of stdin'],
    ['a text that is not UTF-8', Buffer.from('# \xff\n', 'latin1'), 'The text of stdin is not UTF-8.'],
    ['a text of more than 1 MiB', '\n'.repeat(IMPORT_MAX_BYTES + 1), 'The text of stdin has more than 1048576'],
  ])('refuses %s with exit code 2, and makes no database', async (_, text, said) => {
    using made = makeImport()

    expect(await made.feed(text)).toEqual(refusalWith(2, said))
    expect(existsSync(made.database)).toBe(false)
  })

  test('takes a text of 1 MiB, and one without a token', async () => {
    using made = makeImport()
    const text = `${LINE}\n`.padEnd(IMPORT_MAX_BYTES, '\n')

    expect(await made.feed(text)).toMatchObject({ stderr: expect.stringContaining(told(1, 0)), exitCode: 0 })
    expect(await made.feed('# none\n')).toEqual(done(told(0, 0)))
  })

  test('exits with 1 if it cannot read the file', async () => {
    using made = makeDatabase()

    for (const [file, reason] of [
      ['missing', 'there is no such'],
      ['.', 'it is a directory'],
    ] as const) {
      expect(await made.run('token', 'import', file)).toEqual(refusalWith(1, `Cannot read ${file}: ${reason}`))
    }
    expect(existsSync(made.database)).toBe(false)
  })
})
