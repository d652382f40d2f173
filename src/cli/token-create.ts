import type { Command } from 'commander'
import { OPTIONS } from '../config.ts'
import type { NewToken, Store } from '../domain/store.ts'
import { hashToken, type Scope, TOKEN_RANDOM_BYTES, tokenText } from '../domain/token.ts'
import type { Io } from './io.ts'
import { withStore } from './with-store.ts'

interface TokenCreateOptions {
  readonly database: string
  readonly user: string
  readonly scope: Scope
  readonly expires?: number
  readonly label?: string
}

/** `token create`: the token alone on stdout, everything else on stderr. */
export const tokenCreateCommand = (token: Command, io: Io): void => {
  token
    .command('create')
    .description('make a token and print it, once')
    .addOption(OPTIONS.user().makeOptionMandatory())
    .addOption(OPTIONS.scope())
    .addOption(OPTIONS.expires())
    .addOption(OPTIONS.label())
    .addOption(OPTIONS.database())
    .action((options: TokenCreateOptions) =>
      // Tokens can be made before the first start: the store is made for them.
      withStore(options.database, (store) => tellToken(store, options, io), { mustExist: false }),
    )
}

async function tellToken(store: Store, options: TokenCreateOptions, io: Io): Promise<void> {
  const { text, newToken } = makeToken(options)
  const { id, userIsNew } = await store.createToken(newToken)
  if (userIsNew) await io.tell(`The user ${options.user} is new.\n`)
  await io.tell(`This is token ${id}, with scope ${options.scope}. It is shown this once.\n`)
  await io.print(`${text}\n`)
}

/** Makes a token, to be remembered without its text. */
export function makeToken({ user, scope, expires, label }: Omit<TokenCreateOptions, 'database'>) {
  const text = tokenText(crypto.getRandomValues(new Uint8Array(TOKEN_RANDOM_BYTES)))
  const createdAtMs = Date.now()
  const expiresAtMs = expires === undefined ? undefined : createdAtMs + expires
  const newToken: NewToken = { userName: user, hash: hashToken(text), scope, label, createdAtMs, expiresAtMs }
  return { text, newToken }
}
