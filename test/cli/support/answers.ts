import { expect } from 'bun:test'

/** The answer of a command that did its work and printed no result. */
export const done = (told: string) => ({ stdout: '', stderr: `${told}\n`, exitCode: 0 })

/** The answer of a command that refuses, with this exit code and message. */
export const refusal = (exitCode: number, message: string) => ({
  stdout: '',
  stderr: `plantstore: ${message}\n`,
  exitCode,
})

/** The answer of a command that refuses in one line, which holds this text. */
export const refusalWith = (exitCode: number, part: string) => ({
  stdout: '',
  stderr: expect.stringMatching(new RegExp(`^plantstore: [^\\n]*${RegExp.escape(part)}[^\\n]*\\n$`)),
  exitCode,
})
