import { AppError, misused, readFailure } from '../../domain/error.ts'
import { type Caller, SCOPES } from '../../domain/token.ts'
import type { Logger } from '../../log.ts'
import { oneOf, time, userName } from '../../values.ts'
import { readTokenLines } from '../token-lines.ts'

/** The largest tokens file, in bytes: 10 000 tokens. A Secret of Kubernetes is no larger. */
export const TOKENS_FILE_MAX_BYTES = 1024 * 1024
/** A change takes effect once two looks have found the same contents: within 10 s. */
export const LOOK_EVERY_MS = 5000
/** At `reread` the second look follows the first one after this time. */
const LOOK_AGAIN_MS = 200

/** A token of a file, with the number of its line. */
export type FileToken = Pick<Caller, 'userName' | 'scope' | 'expiresAtMs'> & { readonly line: number }
/** The tokens of a file by their hashes. */
export type FileTokens = ReadonlyMap<string, FileToken>

/**
 * Reads a tokens file now, every few seconds and at `reread`. `tokens` returns those of the last file without an error. Rejects
 * with `misused` if the first file has an error. The log tells of a later error once.
 */
export async function watchTokensFile(path: string, log: Logger) {
  let { text: applied, tokens } = await readTokensFile(path)
  let seen = applied

  const readNow = async () => {
    const found = await readTokensFile(path).catch((error: AppError) => error)
    return { found, contents: found instanceof AppError ? found.message : found.text }
  }
  const look = async (isAsked: boolean) => {
    if (isAsked) {
      seen = (await readNow()).contents
      await Bun.sleep(LOOK_AGAIN_MS)
    }
    const { found, contents } = await readNow()
    // A program may still be writing the file if it has changed since the last look.
    const isComplete = contents === seen
    seen = contents
    if (!isComplete || (contents === applied && !isAsked)) return
    applied = contents
    if (found instanceof AppError)
      return log.error({ reason: contents }, 'the tokens file cannot be used: its last tokens stay valid')
    tokens = found.tokens
    log.info({ tokensFile: path, tokens: tokens.size }, 'the tokens file was read')
  }
  let looking = Promise.resolve()
  const lookNext = (isAsked: boolean) => {
    looking = looking.then(() => look(isAsked))
  }
  const timer = setInterval(lookNext, LOOK_EVERY_MS, false)
  return { tokens: () => tokens, reread: () => lookNext(true), [Symbol.dispose]: () => clearInterval(timer) }
}

async function readTokensFile(path: string) {
  const file = Bun.file(path)
  const bytes = await file
    .stat()
    // A read of a pipe could wait for ever.
    .then((stat) => (stat.isFile() ? file.slice(0, TOKENS_FILE_MAX_BYTES + 1).bytes() : undefined))
    .catch((error) => {
      throw misused(`Cannot read the tokens file ${path}: ${readFailure(error)}.`)
    })
  if (bytes === undefined) throw misused(`The tokens file ${path} is not a regular file.`)
  if (bytes.length > TOKENS_FILE_MAX_BYTES)
    throw misused(`The tokens file ${path} has more than ${TOKENS_FILE_MAX_BYTES} bytes: use the database instead.`)
  const text = new TextDecoder().decode(bytes)
  return { text, tokens: parseTokens(text, path) }
}

const LINES = {
  pattern: /^(?<user>\S+)\s+(?<scope>\S+)\s+(?<hash>sha256:[0-9a-f]{64})(?:\s+(?<expiry>\d\S*))?(?:\s.*)?$/,
  form: 'user scope sha256:HEX [expires] [label]',
}

function parseTokens(text: string, path: string): FileTokens {
  const tokens = new Map<string, FileToken>()
  for (const { number, place, words, parse } of readTokenLines(text, path, LINES)) {
    const { hash = '' } = words
    const same = tokens.get(hash)
    if (same !== undefined) throw misused(`${place} has the same hash as line ${same.line}: delete one of them.`)
    tokens.set(hash, {
      line: number,
      userName: parse('user', userName, ''),
      scope: parse('scope', oneOf(SCOPES), 'read'),
      expiresAtMs: parse('expiry', time, undefined),
    })
  }
  if (tokens.size === 0) throw misused(`The tokens file ${path} has no token: leave out --tokens-file, or add one.`)
  return tokens
}
