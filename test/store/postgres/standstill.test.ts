import { expect, test } from 'bun:test'
import { openStore } from '../../../src/store/open.ts'
import { POSTGRES_SERVER, serverUrl } from '../../support/postgres.ts'
import { startPostgresProxy } from '../../support/postgres-proxy.ts'
import { lacks } from '../../support/requirement.ts'
import { CREATED_AT_MS, createToken, newToken, rejectionOf } from '../fixtures.ts'
import { failTest, openDatabase } from './open-database.ts'

/** A value of the first statement that the process does not send any more. */
const MARK = 'marked-token'

test.skipIf(lacks(POSTGRES_SERVER))(
  'a process that stands still while it creates tokens keeps no other from revoking tokens, and creates nothing',
  async () => {
    await using opened = await openDatabase()
    const { token } = await createToken(opened.store, 'me')
    const others = (await opened.store.listTokens()).filter(({ id }) => id !== token.id)
    using proxy = startPostgresProxy(await serverUrl())
    const still = await openStore(proxy.by(opened.url), failTest)
    const stands = Promise.withResolvers<void>()
    let standing: object | undefined
    proxy.decide((_, bytes, connection) => {
      if (standing === undefined && bytes.includes(MARK)) {
        standing = connection
        stands.resolve()
      }
      return connection === standing ? 'hold' : 'pass'
    })

    const creating = rejectionOf(still.createTokens([newToken('you', { label: MARK })]))
    await stands.promise

    expect(await opened.store.revokeTokens({ id: token.id }, CREATED_AT_MS)).toBe(1)
    proxy.release()
    expect(await creating).toMatchObject({ kind: 'store_failed', outcomeIsUnknown: false })
    expect(await opened.store.listTokens()).toEqual([...others, { ...token, revokedAtMs: CREATED_AT_MS }])
    await still.close()
  },
)
