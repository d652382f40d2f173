import { randomBytes } from 'node:crypto'
import { hashText, hashToken, TOKEN_RANDOM_BYTES, tokenText } from '../../src/domain/token.ts'

/** A new token, its hash, and a line of `token import` with it. `rest` follows the hash. */
export function makeTokenLine(user = 'me', scope = 'write', rest = '') {
  const text = tokenText(randomBytes(TOKEN_RANDOM_BYTES))
  const hash = hashText(hashToken(text))
  return { text, hash, line: `${user} ${scope} ${hash} ${rest}` }
}

const HASHES_OF_NOTHING = Array.from({ length: 999 }, (_, index) => hashText(hashToken(String(index))))

/** A thousand lines: this one at this number, and lines without an error. */
export const amongThousand = (line: string, number: number): readonly string[] =>
  HASHES_OF_NOTHING.map((hash) => `me write ${hash}`).toSpliced(number - 1, 0, line)

const HASH = hashText(hashToken('another'))
const TOKEN = makeTokenLine().text

const FORM = ' must be: user scope sha256:HEX [expires] [label].'
const USER = ': the user must be 1 to 64 characters'
const TIME = ': the expiry must be a time in UTC'

/** Lines that have an error, and what the refusal of each says after the number of the line. */
export const WRONG_LINES: readonly (readonly [what: string, line: string, said: string])[] = [
  ['a user with a slash', `m/e write ${HASH}`, USER],
  ['a user of 65 characters', `${'m'.repeat(65)} write ${HASH}`, USER],
  ['an unknown scope', `me admin ${HASH}`, ': the scope must be one of read, write.'],
  ['no hash', 'me write', FORM],
  ['no user', `write ${HASH}`, FORM],
  ['a hash without its last digit', `me write ${HASH.slice(0, -1)}`, FORM],
  ['a hash with one digit too many', `me write ${HASH}0`, FORM],
  ['a hash in upper case', `me write sha256:${HASH.slice(7).toUpperCase()}`, FORM],
  ['a hash of another kind', `me write md5:${HASH.slice(7, 39)}`, FORM],
  ['a token instead of its hash', `me write ${TOKEN}`, FORM],
  ['a day that does not exist', `me write ${HASH} 2027-02-30`, TIME],
  ['an hour that does not exist', `me write ${HASH} 2027-02-28T24:00:00Z`, TIME],
  ['a time of another zone', `me write ${HASH} 2027-02-28T18:00:00+01:00`, TIME],
  ['a duration instead of a time', `me write ${HASH} 90d label`, TIME],
  ['a label of 201 characters', `me write ${HASH} ${'x'.repeat(201)}`, ': the label must be 1 to 200 characters'],
]
