import type { Store, Version } from '../../domain/store.ts'
import { hashText } from '../../domain/token.ts'
import type { AppOptions } from '../../http/options.ts'
import type { FileTokens } from './tokens-file.ts'

/**
 * Adds the tokens of a file to those of a store. If the store has a token with the same hash, in any state, only that one counts:
 * no file can undo a revocation. The first use of a token creates its user. So a full disk hinders no other user.
 */
export function withFileTokens(store: Store, tokensNow: () => FileTokens, nowMs: () => number): AppOptions['store'] {
  let version = 0
  let seen: { readonly stored?: Version; readonly tokens?: FileTokens } = {}

  return {
    ...store,
    // A file has at least one.
    hasTokens: async () => true,

    tokensVersion() {
      const stored = store.tokensVersion()
      const tokens = tokensNow()
      if (stored === undefined) return undefined
      if (stored === seen.stored && tokens === seen.tokens) return version
      seen = { stored, tokens }
      return ++version
    },

    async findToken(hash) {
      const stored = await store.findToken(hash)
      const id = hashText(hash)
      const token = tokensNow().get(id)
      if (stored !== undefined || token === undefined) return stored
      // No user is created for a token that gives no access.
      if (token.expiresAtMs !== undefined && token.expiresAtMs <= nowMs()) return undefined
      const find = () => store.findUser(token.userName)
      const user = (await find()) ?? (await store.createUser(token.userName, nowMs()).then(find))
      return user && { ...token, id, userId: user.id, userIsBlocked: user.isBlocked, revokedAtMs: undefined }
    },
  }
}
