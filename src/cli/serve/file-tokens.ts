import { withKnownOutcome } from '../../domain/error.ts'
import type { Store, Version } from '../../domain/store.ts'
import { hashText } from '../../domain/token.ts'
import type { AppOptions } from '../../http/options.ts'
import type { FileTokens } from './tokens-file.ts'

/**
 * Adds the tokens of a file to those of a store. If the store has a token with the same hash, in any state, only that one counts:
 * no file can undo a revocation. The first use of a token creates its user. So a full disk hinders no other user.
 */
export function withFileTokens(store: Store, tokensNow: () => FileTokens, nowMs: () => number): AppOptions['store'] {
  let seen: FileTokens | undefined
  /** How many files were seen, and the version as of the last of them. */
  let files = 0
  let readAt = 0

  /** A sum of two numbers that never fall, so it changes with each of them. */
  const tokensVersion = (): Version | undefined => {
    const stored = store.tokensVersion()
    if (stored === undefined) return undefined
    const tokens = tokensNow()
    if (tokens !== seen) readAt = stored + ++files
    seen = tokens
    return stored + files
  }

  return {
    ...store,
    tokensVersion,

    hasSameTokens: (user, since) =>
      tokensVersion() !== undefined && since >= readAt && store.hasSameTokens(user, since - files),

    async findToken(hash) {
      const stored = await store.findToken(hash)
      const id = hashText(hash)
      const token = tokensNow().get(id)
      if (stored !== undefined || token === undefined) return stored
      // No user is created for a token that gives no access.
      if (token.expiresAtMs !== undefined && token.expiresAtMs <= nowMs()) return undefined
      const find = () => store.findUser(token.userName)
      const create = () => store.createUser(token.userName, nowMs()).catch(withKnownOutcome)
      const user = (await find()) ?? (await create().then(find))
      return user && { ...token, id, userId: user.id, userIsBlocked: user.isBlocked, revokedAtMs: undefined }
    },
  }
}
