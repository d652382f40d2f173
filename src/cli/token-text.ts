// Tested in test/cli/transcripts/token-list.txt.
import { hashToken, isTokenText, type Token } from '../domain/token.ts'
import { misused } from '../error.ts'
import { type Parser, parseValue } from '../values.ts'
import { openInput, readText } from './input.ts'
import type { Io } from './io.ts'
import { toIso } from './output.ts'

/** What is known of a token at its creation. */
export type NewToken = Pick<Token, 'id' | 'userName' | 'scope' | 'label' | 'createdAtMs' | 'expiresAtMs'>

/** These facts as `--json` prints them. */
export const fieldsOf = ({ id, userName, scope, label, createdAtMs, expiresAtMs }: NewToken) => ({
  id,
  user: userName,
  scope,
  label: label ?? null,
  created: toIso(createdAtMs),
  expires: toIso(expiresAtMs),
})

/** A token in a sentence: `token 2 of user me (write, "dashboard")`. */
export function describe(token: NewToken): string {
  const { id, user, scope, label, expires } = fieldsOf(token)
  const details = [scope, label && JSON.stringify(label), expires && `expires ${expires}`].filter(Boolean)
  return `token ${id} of user ${user} (${details.join(', ')})`
}

/** The hash of the token on stdin. Rejects with `misused` if the text there is not a token. */
export async function readHash(io: Io): Promise<Uint8Array> {
  const text = (await readText(await openInput('-', io), 1024)).trim()
  if (!isTokenText(text)) throw misused('The text on stdin is not a token.')
  return hashToken(text)
}

/**
 * The lines of a text, without empty lines and comments. `pattern` says how a line looks, and its groups are named as messages
 * name the words; `form` says the same for people. `subject` begins a message that refuses the line. `parse` returns the value
 * of a word, or `missing` if the line lacks the word. Both throw `misused` if they refuse something.
 */
export function* readTokenLines(text: string, source: string, { pattern, form }: { pattern: RegExp; form: string }) {
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue
    const subject = `Line ${index + 1} of ${source}`
    const words = pattern.exec(line.trim())?.groups
    if (words === undefined) throw misused(`${subject} must be: ${form}.`)
    const parse = <T, Missing>(word: string, parser: Parser<T>, missing: Missing): T | Missing => {
      const text = words[word]
      return text === undefined ? missing : parseValue(text, parser, `${subject}: the ${word}`)
    }
    yield { number: index + 1, subject, words, parse }
  }
}
