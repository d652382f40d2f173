import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { TOKEN_RANDOM_BYTES, tokenText } from '../../src/domain/token.ts'
import { runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { runProgram } from '../support/program.ts'
import { refusal } from './support/answers.ts'

const TEXT = tokenText(new Uint8Array(TOKEN_RANDOM_BYTES).fill(7))
const hash = (stdin: string, cwd: string) => runPlantstore(['token', 'hash'], { stdin, cwd })

describe.concurrent('token hash', () => {
  test('prints the SHA-256 of a token as sha256sum does, ignores white space around it, and makes no database', async () => {
    using folder = makeFolder()
    const { stdout } = await runProgram(['sha256sum'], { stdin: TEXT })
    const expected = { stdout: `sha256:${stdout.slice(0, 64)}\n`, stderr: '', exitCode: 0 }

    expect(await hash(TEXT, folder.path)).toEqual(expected)
    expect(await hash(` ${TEXT}\r\n`, folder.path)).toEqual(expected)
    expect(readdirSync(folder.path)).toEqual([])
  })

  test.each([
    ['a password', 'secret'],
    ['two tokens', `${TEXT}\n${TEXT}\n`],
  ])('refuses %s with exit code 2', async (_, text) => {
    using folder = makeFolder()

    expect(await hash(text, folder.path)).toEqual(refusal(2, 'The text on stdin is not a token.'))
  })
})
