import { INT64_MAX, INT64_MIN } from '../../../src/domain/int64.ts'
import { openStore } from '../../../src/store/open.ts'
import { newToken } from '../../store/fixtures.ts'
import { KINDS } from '../../support/empty-databases.ts'
import { runPlantstore } from '../../support/executable.ts'
import { createPlants } from '../../support/many-plants.ts'
import { createToken } from '../../support/tokens.ts'

/** Texts that are easily changed on their way. */
export const TEXTS = [
  '',
  ' ',
  'NULL',
  '{}',
  '{"a",b}',
  '"\\\'',
  '\n\t\u0001\u001f',
  'Größe 🌱',
  '\uffff\ufeff',
  'x'.repeat(400_000),
]
/** The smallest and largest ids, and some that are no exact double. */
export const IDS = [INT64_MIN, -1n, 0n, 5n, 9007199254740993n, INT64_MAX]

/** Fills a store with tokens in every state and plants of every kind. Returns the texts of the tokens. */
export async function fill(database: string, more = 0) {
  const store = await openStore(database, () => {})
  try {
    const write = await createToken(store, { user: 'me' })
    const read = await createToken(store, { user: 'me', scope: 'read' })
    const expired = await createToken(store, { user: 'you', expiresAtMs: 1 })
    const revoked = await createToken(store, { user: 'you' })
    const other = await createToken(store, { user: 'you', expiresAtMs: Date.now() + 3_600_000 })
    await createToken(store, { user: 'gone' })
    await store.deleteUser('gone')
    await store.revokeTokens({ id: revoked.id }, 1_700_000_000_000)
    const rotated = await createToken(store, { user: 'you', scope: 'read' })
    await store.rotateToken(rotated.id, newToken('you', { scope: 'read' }), 0)
    const blocked = await createToken(store, { user: 'blocked' })
    await store.setUserBlock('blocked', 1_700_000_000_000)
    await store.touchTokens(new Map([[read.id, 1_700_000_000_001]]), 1_700_000_000_001)
    const [me = 0, you = 0] = (await store.listTokens()).flatMap(({ id, userId }) =>
      id === write.id || id === other.id ? [userId] : [],
    )
    for (const [index, id] of IDS.entries()) {
      await store.createPlant(me, { id, name: TEXTS[index % TEXTS.length] ?? '' })
      await store.createPlant(you, { id, name: 'Ivy', tag: TEXTS[index % TEXTS.length] ?? '' })
    }
    await Promise.all(
      TEXTS.map((text, index) => store.createPlant(me, { id: BigInt(100 + index), name: text, tag: text })),
    )
    const fern = (_: unknown, index: number) => ({ id: BigInt(1000 + index), name: 'Fern' })
    await createPlants(store, you, Array.from({ length: more }, fern))
    const refused = { expired: expired.text, revoked: revoked.text, rotated: rotated.text, blocked: blocked.text }
    return { write: write.text, read: read.text, other: other.text, ...refused }
  } finally {
    await store.close()
  }
}

/** Runs `copy` to its end. */
export const copy = (from: string, to: string, ...flags: readonly string[]) =>
  runPlantstore(['copy', '--from', from, '--to', to, ...flags])

/** The ways between the kinds of stores on this machine and back, and the ways that lead to another kind. */
export const WAYS = KINDS.flatMap((to, index) =>
  KINDS.slice(0, index + 1).map((from) => ({ from, to, way: `from ${from.name} to ${to.name}` })),
)
export const ACROSS = WAYS.filter(({ from, to }) => from !== to || KINDS.length === 1)
