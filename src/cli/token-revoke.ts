import type { Command } from 'commander'
import { OPTIONS } from '../config.ts'
import { AppError } from '../domain/error.ts'
import type { Store, TokenSelection } from '../domain/store.ts'
import { hashToken, isTokenText } from '../domain/token.ts'
import type { Io } from './io.ts'
import { json } from './table.ts'
import { addDatabaseOptions, type DatabaseOptions, withStore } from './with-store.ts'
import { counted, describeToken } from './wording.ts'

interface TokenRevokeOptions extends DatabaseOptions {
  readonly user?: string
  readonly yes?: boolean
  readonly json?: boolean
}

/**
 * `token revoke`: by id, by user, or by the token's text on stdin. Servers refuse it from the next request on. To revoke all
 * tokens of a user, a person has to confirm it by `--yes`.
 */
export const tokenRevokeCommand = (token: Command, io: Io): void => {
  addDatabaseOptions(token.command('revoke'))
    .description('revoke a token by its id, all of a user, or with - the one whose text is on stdin')
    .argument('[id]', 'id of the token, or -')
    .addOption(OPTIONS.user())
    .addOption(OPTIONS.yes())
    .addOption(OPTIONS.json())
    .action(async (id: string | undefined, { user, yes, json: asJson, ...options }: TokenRevokeOptions) => {
      if (id !== undefined && user !== undefined) throw misused()
      const selection = await select(id, user, io)
      const { count, text } = await withStore(options, async (store) => {
        if (user !== undefined && !yes) throw await unconfirmed(store, user)
        return revoke(store, selection, io.nowMs())
      })
      await io.tell(`${text}\n`)
      if (asJson) await io.print(json({ revoked: count }))
    })
}

/** Returns how many tokens were revoked, and the sentence that says which. */
async function revoke(store: Store, selection: TokenSelection, nowMs: number) {
  if ('userName' in selection) {
    const { userName } = selection
    const count = await store.revokeTokens(selection, nowMs)
    const none = `User ${userName} has no token left to revoke.`
    return { count, text: count === 0 ? none : `Revoked ${counted(count, 'token')} of user ${userName}.` }
  }
  const token =
    'hash' in selection
      ? await store.findToken(selection.hash)
      : (await store.listTokens()).find(({ id }) => id === selection.id)
  if (token === undefined) {
    throw new AppError('token_not_found', { message: 'There is no such token: plantstore token list shows all.' })
  }
  const count = await store.revokeTokens(selection, nowMs)
  const named = describeToken(token)
  return { count, text: count === 0 ? `Nothing to do: ${named} was already revoked.` : `Revoked ${named}.` }
}

async function select(id: string | undefined, user: string | undefined, io: Io): Promise<TokenSelection> {
  if (id === '-') {
    const text = (await io.readStdin()).trim()
    if (!isTokenText(text)) throw new AppError('misused', { message: 'What came on stdin is no token.' })
    return { hash: hashToken(text) }
  }
  if (id !== undefined) {
    if (!/^[1-9]\d{0,15}$/.test(id))
      throw new AppError('misused', { message: 'The id of a token is a positive whole number, or -.' })
    return { id: Number(id) }
  }
  if (user === undefined) throw misused()
  return { userName: user }
}

async function unconfirmed(store: Pick<Store, 'listTokens'>, user: string): Promise<AppError> {
  const left = (await store.listTokens(user)).filter(({ revokedAtMs }) => revokedAtMs === undefined)
  return new AppError('misused', {
    message: `This revokes all tokens of ${user} that are not revoked yet, ${left.length}, for good: repeat it with --yes.`,
  })
}

const misused = () => new AppError('misused', { message: 'Say which: an id, or - for stdin, or --user.' })
