import { describe, expect, test } from 'bun:test'
import { hashToken, type Token, tokenText } from '../../src/domain/token.ts'
import { collectTokenUses, TOKEN_USE_RESOLUTION_MS } from '../../src/domain/token-use.ts'
import { type OpenStore, STORES } from '../support/stores.ts'

const HASH = hashToken(tokenText(new Uint8Array(32)))
const START_MS = 1_700_000_000_000

describe.each(STORES)('the use of a token that was looked up before it was ever used, $name', ({ open }) => {
  test('is written once a minute, though the token never learns of it', async () => {
    await using opened = await open()
    const { token, uses, writes, clock } = await collect(opened)
    const minutes = [0, 0.001, 0.5, 0.999, 1, 1.001, 1.999, 2, 5, 5.5]

    for (const minute of minutes) {
      clock.nowMs = START_MS + minute * TOKEN_USE_RESOLUTION_MS
      uses.recordUse(token)
      await uses.flush()
    }

    expect(token.lastUsedAtMs).toBeUndefined()
    const written = [0, 1, 2, 5].map((minute) => START_MS + minute * TOKEN_USE_RESOLUTION_MS)
    expect(writes).toEqual(written.map((atMs) => [[token.id, atMs]]))
    expect((await opened.store.findToken(HASH))?.lastUsedAtMs).toBe(written.at(-1) ?? 0)
  })

  test('is written once for many notes between two flushes, and for many flushes', async () => {
    await using opened = await open()
    const { token, uses, writes, clock } = await collect(opened)

    for (let count = 0; count < 100; count++) {
      uses.recordUse(token)
      clock.nowMs += 1
    }
    for (let count = 0; count < 10; count++) await uses.flush()

    expect(writes).toEqual([[[token.id, START_MS]]])
  })

  test('is that of each token by itself', async () => {
    await using opened = await open()
    const { token, uses, writes, clock } = await collect(opened)
    const { id } = await opened.store.createToken({ ...NEW_TOKEN, hash: hashToken('another') })
    const other = { ...token, id }

    uses.recordUse(token)
    await uses.flush()
    clock.nowMs += TOKEN_USE_RESOLUTION_MS / 2
    uses.recordUse(other)
    uses.recordUse(token)
    await uses.flush()
    clock.nowMs += TOKEN_USE_RESOLUTION_MS / 2
    uses.recordUse(other)
    uses.recordUse(token)
    await uses.flush()

    expect(writes).toEqual([
      [[token.id, START_MS]],
      [[id, START_MS + TOKEN_USE_RESOLUTION_MS / 2]],
      [[token.id, START_MS + TOKEN_USE_RESOLUTION_MS]],
    ])
  })

  test('that could not be written is noted again by the next use, however soon', async () => {
    await using opened = await open()
    const { token, uses, writes, clock, fault } = await collect(opened)

    uses.recordUse(token)
    fault.isOn = true
    expect(await uses.flush().catch(String)).toBe('Error: broken')
    fault.isOn = false
    clock.nowMs += 1
    uses.recordUse(token)
    await uses.flush()
    uses.recordUse(token)
    await uses.flush()

    expect(writes).toEqual([[[token.id, START_MS + 1]]])
  })

  test('is that of the store where the token does know it', async () => {
    await using opened = await open()
    const { token, uses, writes, clock } = await collect(opened)
    const used = { ...token, lastUsedAtMs: START_MS - TOKEN_USE_RESOLUTION_MS + 1 }

    uses.recordUse(used)
    await uses.flush()
    clock.nowMs += 1
    uses.recordUse(used)
    await uses.flush()

    expect(writes).toEqual([[[token.id, START_MS + 1]]])
  })
})

const NEW_TOKEN = {
  userName: 'me',
  hash: HASH,
  scope: 'write',
  label: undefined,
  createdAtMs: START_MS,
  expiresAtMs: undefined,
} as const

/** A token as it was before its first use, and uses that are written to the store, with each write that was done. */
async function collect({ store }: OpenStore) {
  await store.createToken(NEW_TOKEN)
  const token: Token | undefined = await store.findToken(HASH)
  if (token === undefined) throw new Error('the token is gone')
  const clock = { nowMs: START_MS }
  const fault = { isOn: false }
  const writes: [id: number, atMs: number][][] = []
  const uses = collectTokenUses(
    async (lastUsedAtMs) => {
      if (fault.isOn) throw new Error('broken')
      await store.touchTokens(lastUsedAtMs)
      writes.push([...lastUsedAtMs])
    },
    () => clock.nowMs,
  )
  return { token, uses, writes, clock, fault }
}
