import { AppError } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import { makeToken, SCOPES, type TokenRequest } from '../../domain/token.ts'
import { duration, label, oneOf, parseValue, userName } from '../../values.ts'
import { type Io, printFailure } from '../io.ts'
import { runUntilSignal, showProgress } from '../long-task.ts'
import { counted, printPages } from '../output.ts'
import { fieldsOf, type NewToken } from '../token-fields.ts'
import { readTokenLines } from '../token-lines.ts'

/** The most bytes of a batch: about a million lines. */
export const BATCH_MAX_BYTES = 32 * 1024 * 1024
/** How many tokens one transaction creates. Other processes can write between two transactions. */
export const GROUP_TOKENS = 500

/** User, scope, lifetime and label. Only the user must be there. A third word that begins with a digit is a lifetime. */
const LINE = /^(\S+)(?:\s+(\S+)(?:\s+(\d\S*))?(?:\s+(.*))?)?$/s

/** The tokens of a batch. Facts that a line lacks are those of `defaults`. Throws `misused` if a line is wrong. */
function* parseBatch(text: string, defaults: Omit<TokenRequest, 'userName'>) {
  for (const { number, words, place } of readTokenLines(text, 'stdin', LINE, 'user [scope [expires] [label]]')) {
    const [user = '', scope, lifetime, note] = words
    yield {
      line: number,
      userName: parseValue(user, userName, `${place}: the user`),
      scope: scope === undefined ? defaults.scope : parseValue(scope, oneOf(SCOPES), `${place}: the scope`),
      expiresAfterMs:
        lifetime === undefined
          ? defaults.expiresAfterMs
          : parseValue(lifetime, duration('1s'), `${place}: the time until it expires`),
      label: note === undefined ? defaults.label : parseValue(note, label, `${place}: the label`),
    }
  }
}

/**
 * Checks all lines of a batch. Returns a function that creates their tokens, some hundred in a transaction, and prints those of a
 * transaction after its commit. A signal ends it between two transactions.
 */
export function prepareBatch(text: string, defaults: Omit<TokenRequest, 'userName'>, json: true | undefined, io: Io) {
  const requests = [...parseBatch(text, defaults)]
  const total = requests.length
  let printed = 0
  let users = 0
  let committedIds = ''

  const createGroups = async function* (store: Store, signal: AbortSignal) {
    using progress = showProgress(io)
    while (printed < total && !signal.aborted) {
      const made = requests.slice(printed, printed + GROUP_TOKENS).map((request) => makeToken(request, io))
      const { firstId, newUsers } = await store.createTokens(made.map(({ newToken }) => newToken))
      users += newUsers.length
      committedIds = `${firstId} to ${firstId + made.length - 1}`
      yield made.map(({ text, newToken }, index) => ({ text, id: firstId + index, ...newToken }))
      printed += made.length
      if (!io.printsToTerminal) progress.update(printed, total, `${printed} of ${total} tokens created`)
    }
  }
  const print = (output: string) =>
    io.print(output).catch((cause: Error) => {
      const message = `Tokens ${committedIds} are active, but some could not be printed (${printFailure(cause)}): run plantstore token revoke for those.`
      throw committedIds === '' ? cause : new AppError('file_unusable', { message, cause })
    })
  const createAll = async (store: Store, signal: AbortSignal) => {
    await printPages({ print }, createGroups(store, signal), { toRow, toText, json })
    if (printed < total) signal.throwIfAborted()
    if (users > 0) await io.tell(`Created ${counted(users, 'user')}.`)
    await io.tell(`Created ${counted(printed, 'token')}. Each is shown only once.`)
  }
  const stoppedText = () =>
    `${printed} of ${counted(total, 'token')} are created and printed. To create the rest, run the command with the lines after line ${requests[printed - 1]?.line ?? 0}.`
  return (store: Store) => runUntilSignal(io, (signal) => createAll(store, signal), stoppedText)
}

type Created = NewToken & { readonly text: string }

const toRow = ({ text, ...token }: Created) => ({ token: text, ...fieldsOf(token) })

const toText = (rows: readonly ReturnType<typeof toRow>[]): string =>
  rows.map(({ user, token }) => `${user} ${token}\n`).join('')
