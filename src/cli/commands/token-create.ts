import type { Command } from '@commander-js/extra-typings'
import { OPTIONS, type OptionsOf } from '../../config.ts'
import { AppError } from '../../domain/error.ts'
import type { Store } from '../../domain/store.ts'
import { makeToken, TOKEN_RANDOM_BYTES } from '../../domain/token.ts'
import { type Io, isClosedPipe } from '../io.ts'
import { manual, STORE_UNUSABLE } from '../manual.ts'
import { toJson } from '../table.ts'
import { addDatabaseOptions, withStore } from '../with-store.ts'
import { describeToken } from '../wording.ts'
import { describeNew } from './token-list.ts'

/** The command with its options. */
const define = (token: Command) =>
  addDatabaseOptions(token.command('create'))
    .description('Creates a token and prints it once.')
    .addHelpText(
      'after',
      manual(['token create --user me', 'token create --user me --scope read --expires 90d --label dashboard'], {
        failed: 'The token is active but could not be printed.',
        storeUnusable: STORE_UNUSABLE,
      }),
    )
    .addOption(OPTIONS.owner)
    .addOption(OPTIONS.scope)
    .addOption(OPTIONS.expires)
    .addOption(OPTIONS.label)
    .addOption(OPTIONS.json)

type Options = OptionsOf<ReturnType<typeof define>>

/** `token create`: prints only the token on stdout, or all that is known of the token in JSON. The rest goes to stderr. */
export const tokenCreateCommand = (token: Command, io: Io): void => {
  define(token).action((options) =>
    // An operator may create tokens before the first start, so this makes a missing store.
    withStore(options, (store) => createAndPrint(store, options, io), {
      mustExist: false,
      onCreated: (database) => void io.tell(`Created a new, empty store: ${database}.\n`),
    }),
  )
}

async function createAndPrint(store: Store, options: Options, io: Io): Promise<void> {
  const wish = { userName: options.user, scope: options.scope, label: options.label, expiresAfterMs: options.expires }
  const { text, newToken } = makeToken(wish, io.randomBytes(TOKEN_RANDOM_BYTES), io.nowMs())
  const { id, userIsNew } = await store.createToken(newToken)
  if (userIsNew) await io.tell(`Created user ${options.user}.\n`)
  await io.tell(`Created ${describeToken({ id, ...newToken })}. It is shown only once.\n`)
  try {
    await io.print(options.json ? toJson({ token: text, ...describeNew({ id, ...newToken }) }) : `${text}\n`)
  } catch (cause) {
    const failure = cause instanceof Error ? cause.message : String(cause)
    const reason = isClosedPipe(cause) ? 'nobody reads stdout' : failure
    const message = `Token ${id} is active, but could not be printed (${reason}): run plantstore token revoke ${id}.`
    throw new AppError('file_unusable', { message, cause })
  }
}
