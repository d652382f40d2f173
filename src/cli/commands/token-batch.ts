// Tested in test/cli/transcripts/token-create.txt.
import type { Store } from '../../domain/store.ts'
import { makeToken, SCOPES, type TokenRequest } from '../../domain/token.ts'
import { AppError, misused } from '../../error.ts'
import { duration, label, newUserName, oneOf } from '../../values.ts'
import { openInput, readText } from '../input.ts'
import { type Io, printFailure } from '../io.ts'
import { counted, toJson } from '../output.ts'
import { fieldsOf, readTokenLines } from '../token-text.ts'

/** The most tokens and bytes of a batch. One transaction creates all tokens, so that other processes wait a second at most. */
const TOKENS_MAX = 10_000
const BATCH_MAX_BYTES = 4 * 1024 * 1024

/** Only the user must be there. A third word that begins with a digit is a lifetime. */
const LINES = {
  pattern: /^(?<user>\S+)(?:\s+(?<scope>\S+)(?:\s+(?<lifetime>\d\S*))?(?:\s+(?<label>.*))?)?$/s,
  form: 'user [scope [expires] [label]]',
}

/** Reads a batch on stdin. Facts that a line lacks are those of `defaults`. Rejects with `misused` if a line is wrong. */
export async function readBatch(defaults: Omit<TokenRequest, 'userName'>, io: Io): Promise<readonly TokenRequest[]> {
  const text = await readText(await openInput('-', io), BATCH_MAX_BYTES)
  const requests = Array.from(readTokenLines(text, 'stdin', LINES), ({ parse }) => ({
    userName: parse('user', newUserName, ''),
    scope: parse('scope', oneOf(SCOPES), defaults.scope),
    expiresAfterMs: parse('lifetime', duration('1s'), defaults.expiresAfterMs),
    label: parse('label', label, defaults.label),
  }))
  if (requests.length <= TOKENS_MAX) return requests
  throw misused(`The lines on stdin are for ${requests.length} tokens: send at most ${TOKENS_MAX} at once.`)
}

/** Creates all tokens or none, and prints them. */
export async function createBatch(store: Store, requests: readonly TokenRequest[], json: true | undefined, io: Io) {
  const made = requests.map((request) => makeToken(request, io.nowMs()))
  const { firstId, newUsers } = await store.createTokens(made.map(({ newToken }) => newToken))
  if (newUsers.length > 0) await io.report(`Created ${counted(newUsers.length, 'user')}.`)
  await io.report(`Created ${counted(made.length, 'token')}. Each is shown only once.`)
  const rows = made.map(({ text, newToken }, index) => ({
    token: text,
    ...fieldsOf({ id: firstId + index, ...newToken }),
  }))
  const text = rows.map(({ user, token }) => `${user} ${token}\n`).join('')
  await io.print(json ? toJson(rows) : text).catch((cause: Error) => {
    const message = `Tokens ${firstId} to ${firstId + rows.length - 1} are active, but some could not be printed (${printFailure(cause)}): run plantstore token revoke for those.`
    throw made.length === 0 ? cause : new AppError('file_unusable', { message, cause })
  })
}
