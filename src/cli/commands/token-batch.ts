// Tested in test/cli/transcripts/token-create.txt.
import type { Store } from '../../domain/store.ts'
import { makeToken, SCOPES, type TokenRequest } from '../../domain/token.ts'
import { AppError } from '../../error.ts'
import { duration, label, newUserName, oneOf } from '../../values.ts'
import { openInput, readText } from '../input.ts'
import { type Io, printFailure } from '../io.ts'
import { progressLines, runUntilSignal } from '../long-task.ts'
import { counted, printPages } from '../output.ts'
import { fieldsOf, type NewToken, readTokenLines } from '../token-text.ts'

/** The most bytes of a batch: about a million lines. */
export const BATCH_MAX_BYTES = 32 * 1024 * 1024
/** How many tokens one transaction creates. Other processes can write between two transactions. */
export const GROUP_TOKENS = 500

/** Only the user must be there. A third word that begins with a digit is a lifetime. */
const LINES = {
  pattern: /^(?<user>\S+)(?:\s+(?<scope>\S+)(?:\s+(?<lifetime>\d\S*))?(?:\s+(?<label>.*))?)?$/s,
  form: 'user [scope [expires] [label]]',
}

type Request = TokenRequest & { readonly line: number }

/** Reads a batch on stdin. Facts that a line lacks are those of `defaults`. Rejects with `misused` if a line is wrong. */
export async function readBatch(defaults: Omit<TokenRequest, 'userName'>, io: Io): Promise<readonly Request[]> {
  const text = await readText(await openInput('-', io), BATCH_MAX_BYTES)
  return Array.from(readTokenLines(text, 'stdin', LINES), ({ number, parse }) => ({
    line: number,
    userName: parse('user', newUserName, ''),
    scope: parse('scope', oneOf(SCOPES), defaults.scope),
    expiresAfterMs: parse('lifetime', duration('1s'), defaults.expiresAfterMs),
    label: parse('label', label, defaults.label),
  }))
}

/** Creates a group of tokens in each transaction, and prints it after the commit. A signal ends this between two groups. */
export async function createBatch(store: Store, requests: readonly Request[], json: true | undefined, io: Io) {
  const total = requests.length
  let printed = 0
  let users = 0
  let committedIds = ''
  const print = (output: string | Uint8Array) =>
    io.print(output).catch((cause: Error) => {
      const message = `Tokens ${committedIds} are active, but some could not be printed (${printFailure(cause)}): run plantstore token revoke for those.`
      throw committedIds === '' ? cause : new AppError('file_unusable', { message, cause })
    })
  async function* createGroups(signal: AbortSignal) {
    const show = progressLines(io)
    while (printed < total && !signal.aborted) {
      const made = requests.slice(printed, printed + GROUP_TOKENS).map((request) => makeToken(request, io.nowMs()))
      const { firstId, newUsers } = await store.createTokens(made.map(({ newToken }) => newToken))
      committedIds = `${firstId} to ${firstId + made.length - 1}`
      yield made.map(({ text, newToken }, index) => ({ text, id: firstId + index, ...newToken }))
      users += newUsers.length
      printed += made.length
      if (!io.printsToTerminal) show(printed, total, `${printed} of ${total} tokens created`)
    }
  }
  const createAll = async (signal: AbortSignal) => {
    await printPages({ print }, createGroups(signal), toRow, toText, json)
    if (printed < total) signal.throwIfAborted()
    if (users > 0) await io.report(`Created ${counted(users, 'user')}.`)
    await io.report(`Created ${counted(printed, 'token')}. Each is shown only once.`)
  }
  const stoppedText = (isCut: boolean) => {
    const rest = `To create the rest, run the command with the lines after line ${requests[printed - 1]?.line ?? 0}.`
    const advice = isCut ? 'More may be active: see plantstore token list.' : rest
    return `${printed} of ${counted(total, 'token')} are created and printed. ${advice}`
  }
  await runUntilSignal(io, createAll, stoppedText)
}

const toRow = ({ text, ...token }: NewToken & { readonly text: string }) => ({ token: text, ...fieldsOf(token) })

const toText = (rows: readonly ReturnType<typeof toRow>[]): string =>
  rows.map(({ user, token }) => `${user} ${token}\n`).join('')
