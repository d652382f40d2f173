import { describe, expect, jest, spyOn, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LOOK_EVERY_MS, TOKENS_FILE_MAX_BYTES, watchTokensFile } from '../../src/cli/serve/tokens-file.ts'
import { createLogger } from '../../src/log.ts'
import { COMMAND, runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { runProgram } from '../support/program.ts'
import { lacks, program } from '../support/requirement.ts'
import { RESTRICTED, SETPRIV } from '../support/restricted.ts'
import { amongThousand, makeFileToken, replaceFile, WRONG_LINES } from '../support/tokens-file.ts'
import { refusalWith } from './support/answers.ts'
import { makeDatabase } from './support/database.ts'

const HUGE_BYTES = 100 * 1024 * 1024
const MKFIFO = program('mkfifo')

/** A folder with a tokens file, or the path of none, and the answer of a server that is started with it. */
function makeTokensFile(contents?: string | Uint8Array) {
  const folder = makeFolder()
  const path = join(folder.path, 'tokens')
  const database = join(folder.path, 'plantstore.db')
  if (contents !== undefined) writeFileSync(path, contents)
  return {
    path,
    /** What a server says that must not start. It must not create a database either. */
    async refuse() {
      const answer = await runPlantstore(['serve', '--database', database, '--tokens-file', path])
      expect(existsSync(database)).toBe(false)
      return answer
    },
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

describe.concurrent('serve --tokens-file', () => {
  test('accepts the tokens of a file, with comments, tabs, CRLF and no last line break', async () => {
    using made = makeDatabase()
    const path = join(made.folder, 'tokens')
    const [write, read, ended, later] = [
      makeFileToken('me', 'write', 'app of 2027'),
      makeFileToken('you', 'read', '2099-01-31T18:00:00Z 2nd dashboard 🌱'),
      makeFileToken('me', 'write', '2020-01-31'),
      makeFileToken('me', 'write', '2099-01-31'),
    ]
    const lines = [
      '# tokens',
      '',
      '  # more',
      write.line.replace(/^(\S+) (\S+) /, '$1\t$2\t'),
      `  ${read.line}`,
      ended.line,
      later.line,
    ]
    writeFileSync(path, lines.join('\r\n').trimEnd())
    await using server = await serve(made.database, ['--tokens-file', path])
    const statuses = async ({ text: token }: { readonly text: string }, id: number) => [
      (await server.request('POST', '/plants', { token, body: { id, name: 'Fern' } })).status,
      (await server.request('GET', '/plants', { token })).status,
    ]

    expect(await statuses(write, 1)).toEqual([200, 200])
    expect(await statuses(read, 2)).toEqual([403, 200])
    expect(await statuses(ended, 3)).toEqual([401, 401])
    expect(await statuses(later, 4)).toEqual([200, 200])
    expect(await statuses(makeFileToken(), 5)).toEqual([401, 401])
    expect(server.stdout()).not.toContain('there is no token yet')
  })

  test('takes the variable PLANTSTORE_TOKENS_FILE', async () => {
    using made = makeDatabase()
    const path = join(made.folder, 'tokens')
    const { text: token, line } = makeFileToken()
    writeFileSync(path, line)
    await using server = await serve(made.database, [], { env: { PLANTSTORE_TOKENS_FILE: path } })

    expect((await server.request('GET', '/plants', { token })).status).toBe(200)
  })

  test('starts without a warning if others may read and write the file, which has only hashes', async () => {
    using made = makeDatabase()
    const path = join(made.folder, 'tokens')
    writeFileSync(path, makeFileToken().line)
    chmodSync(path, 0o666)
    await using server = await serve(made.database, ['--tokens-file', path])
    const lines = server.stdout().trim().split('\n')

    expect(lines.map((line) => JSON.parse(line).level)).toEqual(lines.map(() => 'info'))
    expect(server.stderr()).toBe('')
  })

  test.each(WRONG_LINES)('refuses %s among a thousand lines, and names the line', async (_, line, said) => {
    const number = 1 + Math.floor(Math.random() * 1000)
    using file = makeTokensFile(Buffer.from(amongThousand(line, number).join('\n'), 'latin1'))
    const answer = await file.refuse()

    expect(answer).toEqual(refusalWith(2, `Line ${number} of ${file.path}${said}`))
    expect(answer.stderr).not.toContain('plst_')
  })

  test('refuses two lines with one hash, and names both', async () => {
    const { line, hash } = makeFileToken()
    using file = makeTokensFile(amongThousand(line, 17).with(899, `you read ${hash} 2027-01-31`).join('\n'))

    expect(await file.refuse()).toEqual(
      refusalWith(2, `Line 900 of ${file.path} has the same hash as line 17: delete one of them.`),
    )
  })

  test.each([
    ['a missing file', undefined, 'Cannot read the tokens file', 'there is no such file.'],
    ['an empty file', '', 'has no token: leave out --tokens-file, or add one.', ''],
    ['a file of comments', '# none yet\n\n', 'has no token', ''],
    ['bytes that are no text', new Uint8Array(4096), 'Line 1 of', 'must be: user scope'],
  ])('refuses %s', async (_, contents, said, reason) => {
    using file = makeTokensFile(contents)
    const answer = await file.refuse()

    expect(answer).toEqual(refusalWith(2, said))
    expect(answer.stderr).toContain(reason)
  })

  test('refuses a directory, and a file of 100 MB without reading all of it', async () => {
    using folder = makeTokensFile()
    mkdirSync(folder.path)
    using huge = makeTokensFile(makeFileToken().line)
    truncateSync(huge.path, HUGE_BYTES)

    expect(await folder.refuse()).toEqual(refusalWith(2, 'is not a regular file.'))
    expect(await huge.refuse()).toEqual(refusalWith(2, `has more than ${TOKENS_FILE_MAX_BYTES} bytes`))
  })

  test.skipIf(lacks(MKFIFO))('refuses a pipe, and does not wait for its writer', async () => {
    using file = makeTokensFile()
    await runProgram(['mkfifo', file.path])

    expect(await file.refuse()).toEqual(refusalWith(2, 'is not a regular file.'))
  })

  test.skipIf(lacks(SETPRIV))('refuses a file that it may not read', async () => {
    using file = makeTokensFile(makeFileToken().line)
    chmodSync(file.path, 0o000)
    const serving = [...COMMAND, 'serve', '--listen', '127.0.0.1:0', '--tokens-file', file.path]

    expect(await runProgram([...RESTRICTED, ...serving])).toEqual(refusalWith(2, 'this user may not read it.'))
  })
})

/** The log of a watcher of a file, and the watcher. */
async function watch(path: string) {
  const lines: string[] = []
  const log = createLogger('info', { write: (line) => void lines.push(line) })
  return { lines, watched: await watchTokensFile(path, log) }
}

describe('a tokens file', () => {
  test('may have its largest size, and not one byte more', async () => {
    const { line } = makeFileToken()
    using largest = makeTokensFile(`${line}\n${'#'.repeat(TOKENS_FILE_MAX_BYTES - line.length - 1)}`)
    using larger = makeTokensFile(`${line}\n${'#'.repeat(TOKENS_FILE_MAX_BYTES - line.length)}`)
    using watched = (await watch(largest.path)).watched

    expect(watched.tokens().size).toBe(1)
    expect(watch(larger.path)).rejects.toThrow(`has more than ${TOKENS_FILE_MAX_BYTES} bytes`)
  })

  test('with an error is told of once, however often the server looks, and once when it is good', async () => {
    using file = makeTokensFile(makeFileToken().line)
    jest.useFakeTimers()
    const { lines, watched } = await watch(file.path)
    const levels = () => lines.map((line) => JSON.parse(line).level)
    using opened = spyOn(Bun, 'file')
    const begun = () => opened.mock.calls.filter(([path]) => String(path) === file.path).length
    /** Lets the watcher look this often, and begin one more look: the looks before it have ended then. */
    const looks = async (count: number) => {
      for (let look = 0; look <= count; look++) {
        const before = begun()
        jest.advanceTimersByTime(LOOK_EVERY_MS)
        while (begun() === before) await Bun.file(import.meta.path).text()
      }
    }
    writeFileSync(file.path, 'me write')
    await looks(20)
    const whileWrong = levels()
    replaceFile(file.path, [makeFileToken().line, makeFileToken().line])
    await looks(20)
    watched[Symbol.dispose]()
    jest.useRealTimers()

    expect(whileWrong).toEqual(['error'])
    expect(levels()).toEqual(['error', 'info'])
    expect(watched.tokens().size).toBe(2)
  })

  test('says when a token expires: at a time, or at the first moment of a day', async () => {
    const rests = [
      '',
      'label',
      '2027-01-31',
      '2027-01-31T18:00:00Z label',
      '2027-01-31T18:00:00.500Z',
      'from 2027-01-31',
    ]
    const tokens = rests.map((rest) => makeFileToken('me', 'read', rest))
    using file = makeTokensFile(tokens.map(({ line }) => line).join('\n'))
    using watched = (await watch(file.path)).watched

    expect(tokens.map(({ hash }) => watched.tokens().get(hash)?.expiresAtMs)).toEqual([
      undefined,
      undefined,
      Date.UTC(2027, 0, 31),
      Date.UTC(2027, 0, 31, 18),
      Date.UTC(2027, 0, 31, 18, 0, 0, 500),
      undefined,
    ])
  })
})
