import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import { AppError } from '../../domain/error.ts'
import { OTHERS_SEEN_WITHIN_MS, type Store, type TokenSelection } from '../../domain/store.ts'
import { hashToken, isTokenText, makeToken, TOKEN_RANDOM_BYTES, type Token, tokenState } from '../../domain/token.ts'
import { addDatabaseOptions, manual, misused, withStore } from '../command.ts'
import { type Io, isClosedPipe } from '../io.ts'
import { counted, table, toJson } from '../output.ts'

/** `token create`, `token list` and `token revoke`. */
export const tokenCommands = (program: Command, io: Io): void => {
  const token = program.command('token').description('Creates, lists and revokes tokens.')
  createCommand(token, io)
  listCommand(token, io)
  revokeCommand(token, io)
}

/** `token create` prints only the token on stdout, or all that is known of the token in JSON. The rest goes to stderr. */
const createCommand = (token: Command, io: Io) =>
  addDatabaseOptions(token.command('create'))
    .description('Creates a token and prints it once.')
    .addHelpText(
      'after',
      manual('token create --user me', 'token create --user me --scope read --expires 90d --label dashboard', {
        failed: 'The token is active but could not be printed.',
      }),
    )
    .addOption(OPTIONS.owner)
    .addOption(OPTIONS.scope)
    .addOption(OPTIONS.expires)
    .addOption(OPTIONS.label)
    .addOption(OPTIONS.json)
    .action(async ({ user: userName, scope, label, expires: expiresAfterMs, json, ...options }) => {
      const request = { userName, scope, label, expiresAfterMs }
      const { text, newToken } = makeToken(request, io.randomBytes(TOKEN_RANDOM_BYTES), io.nowMs())
      const create = async (store: Store) => {
        const { id, userIsNew } = await store.createToken(newToken)
        const created = { id, ...newToken }
        if (userIsNew) await io.tell(`Created user ${userName}.\n`)
        await io.tell(`Created ${describe(created)}. It is shown only once.\n`)
        await io.print(json ? toJson({ token: text, ...fieldsOf(created) }) : `${text}\n`).catch((cause: Error) => {
          const reason = isClosedPipe(cause) ? 'nobody reads stdout' : cause.message
          const message = `Token ${id} is active, but could not be printed (${reason}): run plantstore token revoke ${id}.`
          throw new AppError('file_unusable', { message, cause })
        })
      }
      // An operator may create tokens before the first start, so this makes a missing store.
      const onCreated = (database: string) => void io.tell(`Created a new, empty store: ${database}.\n`)
      await withStore(options, create, { mustExist: false, onCreated })
    })

const listCommand = (token: Command, io: Io) =>
  addDatabaseOptions(token.command('list'))
    .description('Lists the tokens, but never their text.')
    .addHelpText('after', manual('token list', 'token list --user me --json', { failed: 'The user is unknown.' }))
    .addOption(OPTIONS.user)
    .addOption(OPTIONS.json)
    .action(async ({ user, json, ...options }) => {
      const tokens = await withStore(options, (store) => store.listTokens(user))
      const nowMs = io.nowMs()
      const rows = tokens.map((each) => ({
        ...fieldsOf(each),
        lastUsed: toIso(each.lastUsedAtMs),
        state: tokenState(each, nowMs),
      }))
      if (json) return io.print(toJson(rows))
      const cells = rows.map((row) =>
        Object.entries(row).map(([name, value]) => value ?? (name === 'label' ? '-' : 'never')),
      )
      await io.print(table([['id', 'user', 'scope', 'label', 'created', 'expires', 'last used', 'state'], ...cells]))
    })

const revokeCommand = (token: Command, io: Io) =>
  addDatabaseOptions(token.command('revoke'))
    .description('Revokes a token by its id, by its text on stdin, or all tokens of a user.')
    .addHelpText(
      'after',
      manual('token revoke 2', 'token revoke --user me --yes', { failed: 'The token or the user is unknown.' }),
    )
    .argument('[id]', 'The id of the token, or - for its text on stdin.')
    .addOption(OPTIONS.user)
    .addOption(OPTIONS.yes)
    .addOption(OPTIONS.json)
    .action(async (id, { user, yes, json, ...options }) => {
      const selection = await select(id, user, io)
      const { count, text } = await withStore(options, (store) => revoke(store, selection, yes === true, io.nowMs()))
      // Once this command has ended, every server on the same file refuses the token.
      await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
      await io.tell(`${text}\n`)
      if (json) await io.print(toJson({ revoked: count }))
    })

async function select(id: string | undefined, user: string | undefined, io: Io): Promise<TokenSelection> {
  if (id === undefined && user !== undefined) return { userName: user }
  if (id === undefined || user !== undefined) throw misused('Say which: an id, or - for stdin, or --user.')
  if (id === '-') {
    const bytes = Buffer.concat(await Array.fromAsync(io.stdin()))
    const text = bytes.toString().trim()
    if (!isTokenText(text)) throw misused('The text on stdin is not a token.')
    return { hash: hashToken(text) }
  }
  if (!/^[1-9]\d{0,15}$/.test(id)) throw misused('The id of a token is a positive whole number, or -.')
  return { id: Number(id) }
}

/** Revokes the selected tokens. Returns how many were not revoked before, and a sentence for the operator. */
async function revoke(store: Store, selection: TokenSelection, isConfirmed: boolean, nowMs: number) {
  const tokens = await find(store, selection)
  if ('userName' in selection) {
    const { userName: user } = selection
    const left = tokens.filter(({ revokedAtMs }) => revokedAtMs === undefined).length
    if (!isConfirmed)
      throw misused(
        `This revokes all tokens of ${user} that are not revoked yet, ${left}, for good: repeat it with --yes.`,
      )
    const count = await store.revokeTokens(selection, nowMs)
    const revoked = `Revoked ${counted(count, 'token')} of user ${user}.`
    return { count, text: count === 0 ? `User ${user} has no token left to revoke.` : revoked }
  }
  const [token] = tokens
  if (token === undefined)
    throw new AppError('token_not_found', { message: 'There is no such token: plantstore token list shows all.' })
  const count = await store.revokeTokens(selection, nowMs)
  const text = count === 0 ? `Nothing to do: ${describe(token)} was already revoked.` : `Revoked ${describe(token)}.`
  return { count, text }
}

/** The selected tokens, in any state. Rejects with `user_not_found`. */
async function find(store: Store, selection: TokenSelection): Promise<readonly Token[]> {
  if ('userName' in selection) return store.listTokens(selection.userName)
  if ('id' in selection) return (await store.listTokens()).filter(({ id }) => id === selection.id)
  const token = await store.findToken(selection.hash)
  return token === undefined ? [] : [token]
}

type NewToken = Pick<Token, 'id' | 'userName' | 'scope' | 'label' | 'createdAtMs' | 'expiresAtMs'>

/** The fields of a token that are known at its creation, as `--json` prints them. */
const fieldsOf = ({ id, userName, scope, label, createdAtMs, expiresAtMs }: NewToken) => ({
  id,
  user: userName,
  scope,
  label: label ?? null,
  created: new Date(createdAtMs).toISOString(),
  expires: toIso(expiresAtMs),
})

const toIso = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())

/** A token in a sentence: `token 2 of user me (write, "dashboard")`. */
function describe(token: NewToken): string {
  const { id, user, scope, label, expires } = fieldsOf(token)
  const details = [scope, label && JSON.stringify(label), expires && `expires ${expires}`].filter(Boolean)
  return `token ${id} of user ${user} (${details.join(', ')})`
}
