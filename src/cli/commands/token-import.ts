import type { Command } from '@commander-js/extra-typings'
import { SCOPES, type Token } from '../../domain/token.ts'
import { AppError, misused } from '../../error.ts'
import { label, newUserName, oneOf, time } from '../../values.ts'
import { defineCommand, STORE_OPTIONS, withNewStore } from '../command.ts'
import { openInput, readText } from '../input.ts'
import type { Io } from '../io.ts'
import { counted, toJson } from '../output.ts'
import { readTokenLines } from '../token-text.ts'

/** The largest text: 13 000 tokens, which one transaction stores. A Secret of Kubernetes is no larger. */
export const IMPORT_MAX_BYTES = 1024 * 1024

/** The expiry and the label may be missing. A fourth word that begins with a digit is an expiry. */
const LINES = {
  pattern: /^(?<user>\S+)\s+(?<scope>\S+)\s+sha256:(?<hash>[0-9a-f]{64})(?:\s+(?<expiry>\d\S*))?(?:\s+(?<label>.*))?$/s,
  form: 'user scope sha256:HEX [expires] [label]',
}

/** `token import`: stores tokens by their hashes, so that only their holders have their texts. */
export const importCommand = (token: Command, io: Io) =>
  defineCommand(token, 'import', {
    does: 'Creates tokens from lines with their hashes. It leaves alone those that exist, and revokes none.',
    examples: ['token import tokens', 'token import - < tokens'],
    exits: {
      failed: 'The file cannot be read, or a token exists with another user or scope, or revoked: nothing was created.',
      misused: 'The command line, a variable or a line is wrong, or the file is incomplete: nothing was created.',
    },
    options: ['database', ...STORE_OPTIONS, 'json'],
  })
    .argument('<file>', `The lines, or - for stdin: ${LINES.form}.`)
    .action(async (file, { json, ...options }) => {
      const input = await openInput(file, io)
      const lines = parseTokens(await readText(input, IMPORT_MAX_BYTES), input.name, io.nowMs())
      const { created, newUsers, refused } = await withNewStore(options, io, (store) => store.createTokens(lines))
      if (refused !== undefined) throw refusal(`${lines[refused.index]?.subject}`, refused.stored)
      const skipped = lines.length - created
      if (newUsers.length > 0) await io.report(`Created ${counted(newUsers.length, 'user')}.`)
      await io.report(`Created ${counted(created, 'token')}, and left ${counted(skipped, 'token')} as they were.`)
      if (json) await io.print(toJson({ lines: lines.length, created, skipped, createdUsers: newUsers.length }))
    })

function parseTokens(text: string, source: string, createdAtMs: number) {
  if (!text.endsWith('\n'))
    throw misused(`There is no line feed at the end of ${source}, so a part of it may be missing: complete it.`)
  const numbers = new Map<string, number>()
  return Array.from(readTokenLines(text, source, LINES), ({ number, subject, words: { hash = '' }, parse }) => {
    const same = numbers.get(hash)
    if (same !== undefined) throw misused(`${subject} has the same hash as line ${same}: delete one of them.`)
    numbers.set(hash, number)
    return {
      subject,
      userName: parse('user', newUserName, ''),
      scope: parse('scope', oneOf(SCOPES), 'read'),
      hash: Uint8Array.fromHex(hash),
      expiresAtMs: parse('expiry', time, undefined),
      label: parse('label', label, undefined),
      createdAtMs,
    }
  })
}

/** The error for a line whose token exists and would have to change. */
function refusal(subject: string, { id, userName, scope, revokedAtMs }: Token): AppError {
  const [found, remedy] =
    revokedAtMs === undefined ? [`of user ${userName} with scope ${scope}`, 'correct'] : ['which is revoked', 'delete']
  const message = `${subject} has the hash of token ${id}, ${found}: ${remedy} the line. Nothing was created.`
  return new AppError('file_unusable', { message })
}
