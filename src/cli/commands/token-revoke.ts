import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import { AppError } from '../../domain/error.ts'
import { OTHERS_SEEN_WITHIN_MS, type Store, type TokenSelection } from '../../domain/store.ts'
import { hashToken, isTokenText, type Token } from '../../domain/token.ts'
import type { Io } from '../io.ts'
import { manual, STORE_UNUSABLE } from '../manual.ts'
import { toJson } from '../table.ts'
import { addDatabaseOptions, withStore } from '../with-store.ts'
import { counted, describeToken } from '../wording.ts'

/**
 * `token revoke`: revokes a token by its id or by its text on stdin, or all tokens of a user. Servers refuse the token from the
 * next request on. All tokens of a user need a confirmation by `--yes`.
 */
export const tokenRevokeCommand = (token: Command, io: Io): void => {
  addDatabaseOptions(token.command('revoke'))
    .description('Revokes a token by its id, by its text on stdin, or all tokens of a user.')
    .addHelpText(
      'after',
      manual(['token revoke 2', 'token revoke --user me --yes'], {
        failed: 'The token or the user is unknown.',
        storeUnusable: STORE_UNUSABLE,
      }),
    )
    .argument('[id]', 'The id of the token, or - for its text on stdin.')
    .addOption(OPTIONS.user)
    .addOption(OPTIONS.yes)
    .addOption(OPTIONS.json)
    .action(async (id, { user, yes, json, ...options }) => {
      if (id !== undefined && user !== undefined) throw misused()
      const selection = await select(id, user, io)
      const { token, count } = await withStore(options, async (store) => {
        if (user !== undefined && !yes) throw await unconfirmed(store, user)
        const token = await findToken(store, selection)
        return { token, count: await store.revokeTokens(selection, io.nowMs()) }
      })
      // Once this command has ended, every server on the same file refuses the token.
      await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
      await io.tell(`${token === undefined ? describeAll(user, count) : describeOne(token, count)}\n`)
      if (json) await io.print(toJson({ revoked: count }))
    })
}

async function select(id: string | undefined, user: string | undefined, io: Io): Promise<TokenSelection> {
  if (id === '-') {
    const text = (await io.readStdin()).trim()
    if (!isTokenText(text)) throw new AppError('misused', { message: 'The text on stdin is not a token.' })
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

/** The selected token, or nothing if the selection is a user. Rejects with `token_not_found`. */
async function findToken(store: Store, selection: TokenSelection): Promise<Token | undefined> {
  if ('userName' in selection) return undefined
  const token =
    'hash' in selection
      ? await store.findToken(selection.hash)
      : (await store.listTokens()).find(({ id }) => id === selection.id)
  if (token !== undefined) return token
  throw new AppError('token_not_found', { message: 'There is no such token: plantstore token list shows all.' })
}

const describeOne = (token: Token, count: number): string =>
  count === 0 ? `Nothing to do: ${describeToken(token)} was already revoked.` : `Revoked ${describeToken(token)}.`

const describeAll = (user: string | undefined, count: number): string =>
  count === 0 ? `User ${user} has no token left to revoke.` : `Revoked ${counted(count, 'token')} of user ${user}.`

const misused = () => new AppError('misused', { message: 'Say which: an id, or - for stdin, or --user.' })
