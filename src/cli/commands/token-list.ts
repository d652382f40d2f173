import type { Command } from '@commander-js/extra-typings'
import { OPTIONS } from '../../config.ts'
import { type Token, tokenState } from '../../domain/token.ts'
import type { Io } from '../io.ts'
import { manual, STORE_UNUSABLE } from '../manual.ts'
import { table, toJson } from '../table.ts'
import { addDatabaseOptions, withStore } from '../with-store.ts'

/** `token list`: prints everything about the tokens but their text. */
export const tokenListCommand = (token: Command, io: Io): void => {
  addDatabaseOptions(token.command('list'))
    .description('Lists the tokens, but never their text.')
    .addHelpText(
      'after',
      manual(['token list', 'token list --user me --json'], {
        failed: 'The user is unknown.',
        storeUnusable: STORE_UNUSABLE,
      }),
    )
    .addOption(OPTIONS.user)
    .addOption(OPTIONS.json)
    .action(async ({ user, json, ...options }) => {
      const tokens = await withStore(options, (store) => store.listTokens(user))
      const nowMs = io.nowMs()
      const rows = tokens.map((each) => describe(each, nowMs))
      await io.print(json ? toJson(rows) : toTable(rows))
    })
}

type Description = ReturnType<typeof describe>

const describe = (token: Token, nowMs: number) => ({
  ...describeNew(token),
  lastUsed: toIso(token.lastUsedAtMs),
  state: tokenState(token, nowMs),
})

/** The fields of a token that are known at its creation, as `--json` prints them. */
export const describeNew = (
  token: Pick<Token, 'id' | 'userName' | 'scope' | 'label' | 'createdAtMs' | 'expiresAtMs'>,
) => ({
  id: token.id,
  user: token.userName,
  scope: token.scope,
  label: token.label ?? null,
  created: toIso(token.createdAtMs),
  expires: toIso(token.expiresAtMs),
})

const toIso = (ms: number | undefined): string | null => (ms === undefined ? null : new Date(ms).toISOString())

const toTable = (rows: readonly Description[]): string =>
  table(
    ['id', 'user', 'scope', 'label', 'created', 'expires', 'last used', 'state'],
    rows.map(({ id, user, scope, label, created, expires, lastUsed, state }) => [
      String(id),
      user,
      scope,
      label ?? '-',
      created ?? '-',
      expires ?? 'never',
      lastUsed ?? 'never',
      state,
    ]),
  )
