import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import { AppError } from '../../domain/error.ts'
import { OTHERS_SEEN_WITHIN_MS, type Store } from '../../domain/store.ts'
import {
  hashText,
  hashToken,
  isTokenText,
  makeToken,
  TOKEN_RANDOM_BYTES,
  type Token,
  tokenState,
} from '../../domain/token.ts'
import { addDatabaseOptions, manual, misused, withStore } from '../command.ts'
import { type Io, isClosedPipe } from '../io.ts'
import { counted, table, toIso, toJson } from '../output.ts'

/** `token create`, `token list`, `token revoke` and `token hash`. */
export const tokenCommands = (program: Command, io: Io): void => {
  const token = program.command('token').description('Creates, lists, revokes and hashes tokens.')
  createCommand(token, io)
  listCommand(token, io)
  revokeCommand(token, io)
  hashCommand(token, io)
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
      const revoke = await revocationOf(id, user, yes === true, io)
      const { count, text } = await withStore(options, revoke)
      // Once this command has ended, every server on the same file refuses the token.
      await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
      await io.tell(`${text}\n`)
      if (json) await io.print(toJson({ revoked: count }))
    })

/** `token hash` needs no database. */
const hashCommand = (token: Command, io: Io) =>
  token
    .command('hash')
    .description('Prints the hash of a token on stdin, in the form sha256:HEX.')
    .addHelpText('after', manual('token hash < token', 'token hash < token >> hashes'))
    .action(async () => io.print(`${hashText(await readHash(io))}\n`))

/** What the arguments ask for. It returns how many tokens were not revoked before, and a sentence for the operator. */
async function revocationOf(id: string | undefined, user: string | undefined, isConfirmed: boolean, io: Io) {
  if (id === undefined && user !== undefined) return (store: Store) => revokeAll(store, user, isConfirmed, io.nowMs())
  if (id === undefined || user !== undefined) throw misused('Say which: an id, or - for stdin, or --user.')
  const find = await finderOf(id, io)
  return async (store: Store) => revokeOne(store, await find(store), io.nowMs())
}

/** Returns a function that finds the token with an id, or with the text on stdin. */
async function finderOf(id: string, io: Io): Promise<(store: Store) => Promise<Token | undefined>> {
  if (id === '-') {
    const hash = await readHash(io)
    return (store) => store.findToken(hash)
  }
  if (!/^[1-9]\d{0,15}$/.test(id)) throw misused('The id of a token is a positive whole number, or -.')
  return async (store) => (await store.listTokens()).find((token) => token.id === Number(id))
}

/** The hash of the token on stdin. */
async function readHash(io: Io): Promise<Uint8Array> {
  const bytes = Buffer.concat(await Array.fromAsync(io.stdin()))
  const text = bytes.toString().trim()
  if (!isTokenText(text)) throw misused('The text on stdin is not a token.')
  return hashToken(text)
}

async function revokeAll(store: Store, userName: string, isConfirmed: boolean, nowMs: number) {
  const left = (await store.listTokens(userName)).filter(({ revokedAtMs }) => revokedAtMs === undefined).length
  if (!isConfirmed)
    throw misused(
      `This revokes all tokens of ${userName} that are not revoked yet, ${left}, for good: repeat it with --yes.`,
    )
  const count = await store.revokeTokens({ userName }, nowMs)
  const revoked = `Revoked ${counted(count, 'token')} of user ${userName}.`
  return { count, text: count === 0 ? `User ${userName} has no token left to revoke.` : revoked }
}

async function revokeOne(store: Store, token: Token | undefined, nowMs: number) {
  if (token === undefined)
    throw new AppError('token_not_found', { message: 'There is no such token: plantstore token list shows all.' })
  const count = await store.revokeTokens({ id: token.id }, nowMs)
  const text = count === 0 ? `Nothing to do: ${describe(token)} was already revoked.` : `Revoked ${describe(token)}.`
  return { count, text }
}

type NewToken = Pick<Token, 'id' | 'userName' | 'scope' | 'label' | 'createdAtMs' | 'expiresAtMs'>

/** The fields of a token that are known at its creation, as `--json` prints them. */
const fieldsOf = ({ id, userName, scope, label, createdAtMs, expiresAtMs }: NewToken) => ({
  id,
  user: userName,
  scope,
  label: label ?? null,
  created: toIso(createdAtMs),
  expires: toIso(expiresAtMs),
})

/** A token in a sentence: `token 2 of user me (write, "dashboard")`. */
function describe(token: NewToken): string {
  const { id, user, scope, label, expires } = fieldsOf(token)
  const details = [scope, label && JSON.stringify(label), expires && `expires ${expires}`].filter(Boolean)
  return `token ${id} of user ${user} (${details.join(', ')})`
}
