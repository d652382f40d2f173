import { describe, expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { runSql } from '../store/sqlite/files.ts'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { createTokenIn } from '../support/tokens.ts'

/** Clears the line, begins another one, and reverses what follows. */
const CONTROLS = '\u001b[2K\nDone.\u202e\u2028\u009b'
const ESCAPED = String.raw`\u001b[2K\u000aDone.\u202e\u2028\u009b`
const RAW = /(?!\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u

/** A database whose path, user and label of a token have control characters. */
async function makeHostile() {
  const folder = makeFolder()
  const directory = join(folder.path, CONTROLS)
  mkdirSync(directory)
  const database = join(directory, 'plants.db')
  await createTokenIn(database)
  const texts = `char(27) || '[2K' || char(10) || 'Done.' || char(0x202e, 0x2028, 0x9b)`
  runSql(database, `update users set name = ${texts}`, `update tokens set label = ${texts}`)
  return {
    directory,
    args: (...words: readonly string[]) => [...words, '--database', database],
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

describe.concurrent('a sentence on stderr has control characters of names, labels and paths as JSON escapes', () => {
  test.each([
    ['token rotate', 0, ['token', 'rotate', '1']],
    ['token revoke', 0, ['token', 'revoke', '1']],
    ['token create', 0, ['token', 'create', '--user', 'me', '--label', '\u202e\u2028']],
    ['check', 3, ['check']],
    ['an error', 3, ['backup', join(CONTROLS, 'nowhere', 'backup.db')]],
  ] as const)('%s', async (_, exitCode, words) => {
    using made = await makeHostile()
    const answer = await runPlantstore(made.args(...words))

    expect(answer.exitCode).toBe(exitCode)
    expect(answer.stderr).toContain(String.raw`\u202e\u2028`)
    expect(answer.stdout + answer.stderr).not.toMatch(RAW)
    expect(answer.stderr).not.toMatch(/^Done/m)
  })

  test('copy, whose stdout is the raw path for scripts', async () => {
    using made = await makeHostile()
    const [from, to] = [join(made.directory, 'plants.db'), join(made.directory, 'copy.db')]
    runSql(from, "update users set name = 'me'")
    const { stdout, stderr, exitCode } = await runPlantstore(['copy', '--from', from, '--to', to])

    expect({ stdout, exitCode }).toEqual({ stdout: `${to}\n`, exitCode: 0 })
    expect(stderr).toContain(`to ${to.replace(CONTROLS, ESCAPED)}: SHA-256`)
    expect(stderr).not.toMatch(RAW)
  })

  test('on a terminal, the path on stdout too', async () => {
    using made = await makeHostile()
    runSql(join(made.directory, 'plants.db'), "update users set name = 'me'")
    const file = join(made.directory, 'backup.db')
    const { text, exitCode } = await runOnTerminal(made.args('backup', file), { term: 'dumb' })

    expect({ text: text.split('\r\n').slice(1), exitCode }).toEqual({
      text: [file.replace(CONTROLS, ESCAPED), ''],
      exitCode: 0,
    })
  })
})
