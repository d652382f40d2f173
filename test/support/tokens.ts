import type { Store } from '../../src/domain/store.ts'
import { makeToken, type Scope, type Token } from '../../src/domain/token.ts'
import { openStore } from '../../src/store/open.ts'

/** A token as a store has it. */
export const ACTIVE_TOKEN: Token = {
  ...{ id: 1, userId: 1, userName: 'me', scope: 'write', label: undefined, createdAtMs: 0 },
  ...{ expiresAtMs: undefined, revokedAtMs: undefined, lastUsedAtMs: undefined },
  ...{ replacedBy: undefined, userBlockedAtMs: undefined },
}

export interface TokenOptions {
  readonly user?: string
  readonly scope?: Scope
  readonly expiresAtMs?: number
}

/** Makes a token in a store, by default a write token of user `me`. */
export async function createToken(
  store: Pick<Store, 'createTokens'>,
  { user = 'me', scope = 'write', expiresAtMs }: TokenOptions = {},
) {
  const request = { userName: user, scope, label: undefined, expiresAfterMs: undefined }
  const { text, newToken } = makeToken(request, Date.now())
  const { firstId: id } = await store.createTokens([{ ...newToken, expiresAtMs }])
  return { text, id }
}

/** Makes a token in a database, which is made if there is none, and returns its text. */
export async function createTokenIn(database: string, user?: string): Promise<string> {
  const store = await openStore(database, () => {})
  try {
    return (await createToken(store, user === undefined ? {} : { user })).text
  } finally {
    await store.close()
  }
}
