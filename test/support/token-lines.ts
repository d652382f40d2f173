import { randomBytes } from 'node:crypto'
import { hashText, hashToken, TOKEN_RANDOM_BYTES, tokenText } from '../../src/domain/token.ts'

/** A new token, its hash, and a line of `token import` with it. `rest` follows the hash. */
export function makeTokenLine(user = 'me', scope = 'write', rest = '') {
  const text = tokenText(randomBytes(TOKEN_RANDOM_BYTES))
  const hash = hashText(hashToken(text))
  return { text, hash, line: `${user} ${scope} ${hash} ${rest}` }
}
