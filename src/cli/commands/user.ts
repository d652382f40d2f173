import type { Command } from '@commander-js/extra-typings'
import type { Store } from '../../domain/store.ts'
import { providerUserName, type User } from '../../domain/token.ts'
import { misused } from '../../error.ts'
import { parseValue, userName } from '../../values.ts'
import { changeAccess, defineCommand, reportDatabase, STORE_OPTIONS, warnOn, withStore } from '../command.ts'
import type { Io } from '../io.ts'
import { progressLines, runUntilSignal } from '../long-task.ts'
import { counted, printPages, readPages, tableOfPages, toIso, toJson } from '../output.ts'

/** A page of `user list`. PostgreSQL sorts the names of all users for each page, so a page is long. */
export const USER_PAGE_ROWS = 10_000

export const userCommands = (program: Command, io: Io): void => {
  const user = program.command('user').description('Lists, blocks and deletes users.')
  listCommand(user, io)
  blockCommand(user, io, 'block')
  blockCommand(user, io, 'unblock')
  deleteCommand(user, io)
}

const listCommand = (user: Command, io: Io) =>
  defineCommand(user, 'list', {
    does: 'Lists the users by name, with their numbers of plants and tokens.',
    examples: ['user list', 'user list --json --after me --limit 100'],
    options: ['databaseOfServer', ...STORE_OPTIONS, ...SUBJECT_OPTIONS, 'limit', 'afterUser', 'json'],
  }).action(async ({ limit, after, json, ...options }) => {
    const name = options.subject === undefined ? undefined : nameOf(undefined, options)
    const toText = tableOfPages(['user', 'plants', 'tokens', 'created', 'blocked'], () => 'no')
    const list = (store: Store) => {
      const users = readPages(store.listUsers, ({ name }) => name, { name, after, limit }, USER_PAGE_ROWS)
      return printPages(io, users, toRow, toText, json)
    }
    await withStore(options, list, { onOtherName: warnOn(io) })
  })

const toRow = ({ name, plants, tokens, createdAtMs, blockedAtMs }: User) => ({
  user: name,
  plants,
  tokens,
  created: toIso(createdAtMs),
  blocked: toIso(blockedAtMs),
})

/** `user block` can be undone, so it needs no `--yes`. */
function blockCommand(user: Command, io: Io, name: 'block' | 'unblock') {
  const blocks = name === 'block'
  return defineCommand(user, name, {
    does: blocks ? 'Makes servers refuse all tokens of a user.' : 'Makes servers accept the tokens of a user again.',
    examples: [`user ${name} me`, `user ${name} me --json`],
    exits: { failed: 'The user is unknown.' },
    options: ['databaseOfServer', ...STORE_OPTIONS, ...SUBJECT_OPTIONS, 'json'],
  })
    .argument('[name]', 'The name of the user.', parseName)
    .action(async (given, { json, ...options }) => {
      const who = nameOf(given, options)
      const blockedAtMs = blocks ? io.nowMs() : undefined
      // The subject may come for the first time after the block.
      const createsUser = blocks && given === undefined
      const isChanged = await changeAccess(options, io, (store) => store.setUserBlock(who, blockedAtMs, createsUser))
      const done = `${blocks ? 'Blocked' : 'Unblocked'} user ${who}.`
      const nothing = `Nothing to do: user ${who} is ${blocks ? 'already' : 'not'} blocked.`
      await io.report(isChanged ? done : nothing)
      if (json) await io.print(toJson({ user: who, blocked: blocks }))
    })
}

const parseName = (text: string): string => parseValue(text, userName, 'The name of a user')

const SUBJECT_OPTIONS = ['subject', 'issuerOfSubject'] as const

/** The user whom a command is about, who has a name or a subject. */
function nameOf(name: string | undefined, { subject, jwtIssuer }: { subject?: string; jwtIssuer?: string }): string {
  if (name !== undefined && subject === undefined) return name
  if (name !== undefined || subject === undefined) throw misused('Say which user: either a name, or --subject.')
  if (jwtIssuer !== undefined) return providerUserName(jwtIssuer, subject)
  throw misused('Say whose subject this is: --jwt-issuer (PLANTSTORE_JWT_ISSUER).')
}

/** `user delete` cannot be undone, so it needs `--yes`. */
const deleteCommand = (user: Command, io: Io) =>
  defineCommand(user, 'delete', {
    does: 'Deletes a user with all tokens and plants.',
    examples: ['user delete me --yes', 'user delete me --yes --json'],
    exits: { failed: 'The user is unknown.' },
    options: ['databaseOfServer', ...STORE_OPTIONS, ...SUBJECT_OPTIONS, 'yes', 'json'],
  })
    .argument('[name]', 'The name of the user.', parseName)
    .action(async (given, { yes, json, ...options }, command) => {
      const name = nameOf(given, options)
      await reportDatabase(command, io)
      if (!yes) throw misused(`This deletes all plants of ${name} for good: repeat it with --yes.`)
      let stoppedText = 'nothing was deleted. Run the same command again to delete the user.'
      const show = progressLines(io)
      const onProgress = (done: number, total: number) => {
        stoppedText = `user ${name} is blocked, and all tokens and ${done} of ${counted(total, 'plant')} are deleted. Run the same command again to delete the rest.`
        show(done, total, `${done} of ${total} plants of ${name} deleted`)
      }
      const deleteUser = (signal: AbortSignal) =>
        changeAccess(options, io, async (store) => {
          const isBlocked = (await store.findUser(name))?.blockedAtMs !== undefined
          if (isBlocked) await io.report(`User ${name} is blocked already, perhaps by a deletion that was stopped.`)
          return store.deleteUser(name, { signal, onProgress })
        })
      const cutText = 'how much was deleted is unknown: see plantstore user list. Run the same command again.'
      const { plants, tokens } = await runUntilSignal(io, deleteUser, (isCut) => (isCut ? cutText : stoppedText))
      await io.report(`Deleted user ${name} with ${counted(tokens, 'token')} and ${counted(plants, 'plant')}.`)
      if (json) await io.print(toJson({ user: name, tokens, plants }))
    })
