// Tested in test/cli/transcripts/token-create.txt.
import type { Command } from '@commander-js/extra-typings'
import type { Store } from '../../domain/store.ts'
import { hashText, makeToken, TIME_MAX_MS, type Token, type TokenRequest, tokenState } from '../../domain/token.ts'
import { AppError, misused } from '../../error.ts'
import { changeAccess, defineCommand, STORE_OPTIONS, warnOn, withNewStore, withStore } from '../command.ts'
import { type Io, printFailure } from '../io.ts'
import { counted, printPages, readPages, tableOfPages, toIso, toJson } from '../output.ts'
import { describe, fieldsOf, type NewToken, readHash } from '../token-text.ts'
import { createBatch, readBatch } from './token-batch.ts'
import { importCommand } from './token-import.ts'

export const tokenCommands = (program: Command, io: Io): void => {
  const token = program.command('token').description('Creates, imports, rotates, lists, revokes and hashes tokens.')
  createCommand(token, io)
  importCommand(token, io)
  rotateCommand(token, io)
  listCommand(token, io)
  revokeCommand(token, io)
  hashCommand(token, io)
}

/** `token create` prints only the token on stdout, or all that is known of the token in JSON. The rest goes to stderr. */
const createCommand = (token: Command, io: Io) =>
  defineCommand(token, 'create', {
    does: 'Creates a token, or one for each line on stdin, and prints it once.',
    examples: ['token create --user me --scope read --expires 90d --label dashboard', 'token create --batch < users'],
    exits: {
      failed: 'A token is active but could not be printed.',
      misused: 'The command line, a variable or a line of the batch is wrong: nothing was created.',
    },
    options: ['database', ...STORE_OPTIONS, 'owner', 'batch', 'scope', 'expires', 'label', 'json'],
  }).action(async ({ user: userName, batch, scope, label, expires: expiresAfterMs, json, ...options }) => {
    if ((userName === undefined) === (batch === undefined))
      throw misused('Say whose token this is: either --user, or --batch for the lines on stdin.')
    const facts = { scope, label, expiresAfterMs }
    if (userName !== undefined)
      return withNewStore(options, io, (store) => createOne(store, { userName, ...facts }, json, io))
    const requests = await readBatch(facts, io)
    await withNewStore(options, io, (store) => createBatch(store, requests, json, io))
  })

async function createOne(store: Store, request: TokenRequest, json: true | undefined, io: Io) {
  const { text, newToken } = makeToken(request, io.nowMs())
  const { firstId: id, newUsers } = await store.createTokens([newToken])
  if (newUsers.length > 0) await io.report(`Created user ${request.userName}.`)
  await printOnce(io, text, { id, ...newToken }, json && {}, `revoke ${id}`)
}

/** Prints a new token, and all facts in JSON if there are `moreFacts`. If that fails, the message names the remedy. */
async function printOnce(io: Io, text: string, token: NewToken, moreFacts: object | undefined, remedy: string) {
  await io.report(`Created ${describe(token)}. It is shown only once.`)
  const output = moreFacts === undefined ? `${text}\n` : toJson({ token: text, ...fieldsOf(token), ...moreFacts })
  await io.print(output).catch((cause: Error) => {
    const message = `Token ${token.id} is active, but could not be printed (${printFailure(cause)}): run plantstore token ${remedy}.`
    throw new AppError('file_unusable', { message, cause })
  })
}

/** `token rotate` prints as `token create` does. */
const rotateCommand = (token: Command, io: Io) =>
  defineCommand(token, 'rotate', {
    does: 'Creates a token that replaces another one, and prints it once. During the overlap both are valid.',
    examples: ['token rotate 1', 'token rotate 1 --overlap 1h --expires 90d'],
    exits: { failed: 'The old token is unknown, revoked, expired or replaced, or the new one could not be printed.' },
    options: ['databaseOfServer', ...STORE_OPTIONS, 'overlap', 'newExpires', 'json'],
  })
    .argument('<id>', 'The id of the old token, or - for its text on stdin.')
    .action(async (which, { overlap, expires, json, ...options }) => {
      const find = await finderOf(which, io)
      await changeAccess(options, io, async (store) => {
        const old = await find(store)
        const oldEndsAfterMs = Math.min(overlap, (old.expiresAtMs ?? Number.POSITIVE_INFINITY) - io.nowMs())
        const expiresAfterMs = expires ?? (old.expiresAtMs && old.expiresAtMs - old.createdAtMs)
        const oldHasEnded = oldEndsAfterMs < 0
        if (!oldHasEnded && expiresAfterMs !== undefined && expiresAfterMs <= oldEndsAfterMs)
          throw misused('The new token would expire before the old one: make --expires longer or --overlap shorter.')
        const { text, newToken } = makeToken({ ...old, expiresAfterMs }, io.nowMs())
        if (newToken.expiresAtMs && newToken.expiresAtMs > TIME_MAX_MS)
          throw misused(`The times of token ${old.id} give no lifetime for the new one: say --expires.`)
        const { id, oldEndsAtMs } = await store.rotateToken(old.id, newToken, overlap)
        const oldEnds = toIso(oldEndsAtMs)
        await io.report(`Token ${old.id} ${overlap === 0 ? 'is revoked' : `is valid until ${oldEnds}`}.`)
        const moreFacts = json && { replaces: old.id, oldEnds }
        await printOnce(io, text, { id, ...newToken }, moreFacts, `rotate ${id} --overlap 0`)
      })
    })

const listCommand = (token: Command, io: Io) =>
  defineCommand(token, 'list', {
    does: 'Lists the tokens by id, but never their text.',
    examples: ['token list --user me', 'token list --json --after 1000 --limit 100'],
    exits: { failed: 'The user is unknown.' },
    options: ['databaseOfServer', ...STORE_OPTIONS, 'tokensOf', 'limit', 'afterToken', 'json'],
  }).action(async ({ user, limit, after, json, ...options }) => {
    const header = ['id', 'user', 'scope', 'label', 'created', 'expires', 'last used', 'state', 'replaced by']
    const nowMs = io.nowMs()
    const toRow = (token: Token) => ({
      ...fieldsOf(token),
      lastUsed: toIso(token.lastUsedAtMs),
      state: tokenState(token, nowMs),
      replacedBy: token.replacedBy ?? null,
    })
    const toText = tableOfPages(header, (name) => (/expires|lastUsed/.test(name) ? 'never' : '-'))
    const list = (store: Store) => {
      const tokens = readPages(store.listTokens, ({ id }) => id, { userName: user, after, limit })
      return printPages(io, tokens, toRow, toText, json)
    }
    await withStore(options, list, { onOtherName: warnOn(io) })
  })

const revokeCommand = (token: Command, io: Io) =>
  defineCommand(token, 'revoke', {
    does: 'Revokes a token by its id, by its text on stdin, or all tokens of a user.',
    examples: ['token revoke 2', 'token revoke --user me --yes'],
    exits: { failed: 'The token or the user is unknown.' },
    options: ['databaseOfServer', ...STORE_OPTIONS, 'tokensOf', 'yes', 'json'],
  })
    .argument('[id]', 'The id of the token, or - for its text on stdin.')
    .action(async (id, { user, yes, json, ...options }) => {
      const revoke = await revocationOf(id, user, yes === true, io)
      const { count, text } = await changeAccess(options, io, revoke)
      await io.report(text)
      if (json) await io.print(toJson({ revoked: count }))
    })

/** `token hash` needs no database. */
const hashCommand = (token: Command, io: Io) =>
  defineCommand(token, 'hash', {
    does: 'Prints the hash of a token on stdin, as the lines of token import have it.',
    examples: ['token hash < token', 'token hash < token >> hashes'],
  }).action(async () => io.print(`${hashText(await readHash(io))}\n`))

/** What the arguments ask for. It returns how many tokens were not revoked before, and a sentence for the operator. */
async function revocationOf(id: string | undefined, user: string | undefined, isConfirmed: boolean, io: Io) {
  if (id === undefined && user !== undefined) {
    if (!isConfirmed) throw misused(`This revokes all tokens of ${user} for good: repeat it with --yes.`)
    return (store: Store) => revokeAll(store, user, io.nowMs())
  }
  if (id === undefined || user !== undefined) throw misused('Say which: either an id, or - for stdin, or --user.')
  const find = await finderOf(id, io)
  return async (store: Store) => revokeOne(store, await find(store), io.nowMs())
}

/** Returns a function that finds the token with an id, or with the text on stdin, or rejects with `token_not_found`. */
async function finderOf(id: string, io: Io): Promise<(store: Store) => Promise<Token>> {
  const hash = id === '-' ? await readHash(io) : undefined
  if (hash === undefined && !/^[1-9]\d{0,15}$/.test(id))
    throw misused('The id of a token is a positive whole number, or - for its text on stdin.')
  return async (store) => {
    const found = hash
      ? await store.findToken(hash)
      : (await store.listTokens({ after: Number(id) - 1, limit: 1 })).find((token) => token.id === Number(id))
    if (found !== undefined) return found
    throw new AppError('token_not_found', { message: 'There is no such token: plantstore token list shows all.' })
  }
}

async function revokeAll(store: Store, userName: string, nowMs: number) {
  const count = await store.revokeTokens({ userName }, nowMs)
  const revoked = `Revoked ${counted(count, 'token')} of user ${userName}.`
  return { count, text: count === 0 ? `User ${userName} has no token left to revoke.` : revoked }
}

async function revokeOne(store: Store, token: Token, nowMs: number) {
  const count = await store.revokeTokens({ id: token.id }, nowMs)
  const text = count === 0 ? `Nothing to do: ${describe(token)} was already revoked.` : `Revoked ${describe(token)}.`
  return { count, text }
}
