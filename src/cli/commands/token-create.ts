import type { Command } from 'commander'
import { OPTIONS } from '../../config.ts'
import { AppError } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import { makeToken, type Scope, TOKEN_RANDOM_BYTES } from '../../domain/token.ts'
import { type Io, isClosedPipe } from '../io.ts'
import { json } from '../table.ts'
import { addDatabaseOptions, type DatabaseOptions, withStore } from '../with-store.ts'
import { describeToken } from '../wording.ts'
import { describeNew } from './token-list.ts'

interface TokenCreateOptions extends DatabaseOptions {
  readonly user: string
  readonly scope: Scope
  readonly expires?: number
  readonly label?: string
  readonly json?: boolean
}

/** `token create`: the token alone on stdout, or all that is known of it in JSON; everything else on stderr. */
export const tokenCreateCommand = (token: Command, io: Io): void => {
  addDatabaseOptions(token.command('create'))
    .description('make a token and print it, once')
    .addOption(OPTIONS.user().makeOptionMandatory())
    .addOption(OPTIONS.scope())
    .addOption(OPTIONS.expires())
    .addOption(OPTIONS.label())
    .addOption(OPTIONS.json())
    .action((options: TokenCreateOptions) =>
      // Tokens can be made before the first start: the store is made for them.
      withStore(options, (store) => tellToken(store, options, io), {
        mustExist: false,
        onCreated: (database) => void io.tell(`Created a new, empty store: ${database}.\n`),
      }),
    )
}

async function tellToken(store: Store, options: TokenCreateOptions, io: Io): Promise<void> {
  const wish = { userName: options.user, scope: options.scope, label: options.label, expiresAfterMs: options.expires }
  const { text, newToken } = makeToken(wish, io.randomBytes(TOKEN_RANDOM_BYTES), io.nowMs())
  const { id, userIsNew } = await store.createToken(newToken)
  if (userIsNew) await io.tell(`Created user ${options.user}.\n`)
  await io.tell(`Created ${describeToken({ id, ...newToken })}. It is shown only once.\n`)
  try {
    await io.print(options.json ? json({ token: text, ...describeNew({ id, ...newToken }) }) : `${text}\n`)
  } catch (cause) {
    const failure = cause instanceof Error ? cause.message : String(cause)
    const reason = isClosedPipe(cause) ? 'nobody reads stdout' : failure
    const message = `Token ${id} is active, but could not be printed (${reason}): run plantstore token revoke ${id}.`
    throw new AppError('file_unusable', { message, cause })
  }
}
