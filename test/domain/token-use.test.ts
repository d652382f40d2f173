import { describe, expect, test } from 'bun:test'
import type { Store } from '../../src/domain/store.ts'
import { hashToken, type Token, tokenText } from '../../src/domain/token.ts'
import { collectTokenUses, TOKEN_USE_RESOLUTION_MS } from '../../src/domain/token-use.ts'
import { STORES } from '../support/stores.ts'

const HASH = hashToken(tokenText(new Uint8Array(32)))
const START_MS = 1_700_000_000_000
const DAY_MS = 86_400_000

describe.each(STORES)('the last use of a token, $name', ({ open }) => {
  test('is written by the flush after it was noted, with the time of the note', async () => {
    await using opened = await open()
    const token = await createToken(opened.store)
    const clock = { nowMs: START_MS }
    const { uses, writes } = collect(opened.store, clock)

    uses.recordUse(token)
    expect(writes).toEqual([])
    clock.nowMs += 3000
    await uses.flush()

    expect(writes).toEqual([[[token.id, START_MS]]])
    expect((await read(opened.store)).lastUsedAtMs).toBe(START_MS)
  })

  test('is the first use since the last flush', async () => {
    await using opened = await open()
    const token = await createToken(opened.store)
    const clock = { nowMs: START_MS }
    const { uses } = collect(opened.store, clock)

    uses.recordUse(token)
    clock.nowMs += 10
    uses.recordUse(token)
    await uses.flush()

    expect((await read(opened.store)).lastUsedAtMs).toBe(START_MS)
  })

  test('is written at most once a minute', async () => {
    await using opened = await open()
    await createToken(opened.store)
    const clock = { nowMs: START_MS }
    const { uses, writes } = collect(opened.store, clock)

    for (const afterMs of [0, 1, TOKEN_USE_RESOLUTION_MS - 1, TOKEN_USE_RESOLUTION_MS, TOKEN_USE_RESOLUTION_MS + 1]) {
      clock.nowMs = START_MS + afterMs
      uses.recordUse(await read(opened.store))
      await uses.flush()
    }

    expect(TOKEN_USE_RESOLUTION_MS).toBe(60_000)
    expect(writes.flat().map(([, atMs]) => atMs)).toEqual([START_MS, START_MS + TOKEN_USE_RESOLUTION_MS])
  })

  test('is the latest by the clock also after the clock was ahead by a day and was set right', async () => {
    await using opened = await open()
    await createToken(opened.store)
    const clock = { nowMs: START_MS }
    const { uses, writes } = collect(opened.store, clock)
    const rightedMs = START_MS + 2000

    for (const nowMs of [START_MS, START_MS + DAY_MS, rightedMs, rightedMs + 1]) {
      clock.nowMs = nowMs
      uses.recordUse(await read(opened.store))
      await uses.flush()
    }

    expect(writes.flat().map(([, atMs]) => atMs)).toEqual([START_MS, START_MS + DAY_MS, rightedMs])
  })

  test('is written once for each token, all of them together', async () => {
    await using opened = await open()
    const first = await createToken(opened.store)
    const { id } = await opened.store.createToken({ ...NEW_TOKEN, hash: hashToken('another') })
    const { uses, writes } = collect(opened.store, { nowMs: START_MS })

    for (let count = 0; count < 3; count++) {
      uses.recordUse(first)
      uses.recordUse({ ...first, id })
    }
    await uses.flush()

    expect(writes).toEqual([
      [
        [first.id, START_MS],
        [id, START_MS],
      ],
    ])
  })

  test('asks nothing of the store where nothing was noted', async () => {
    await using opened = await open()
    const { uses, writes } = collect(opened.store, { nowMs: START_MS })

    await uses.flush()

    expect(writes).toEqual([])
  })

  test('that could not be written is an error, and the next use is noted again', async () => {
    await using opened = await open()
    const token = await createToken(opened.store)
    const clock = { nowMs: START_MS }
    let isBroken = true
    const uses = collectTokenUses(
      async (lastUsedAtMs) => {
        if (isBroken) throw new Error('broken')
        await opened.store.touchTokens(lastUsedAtMs)
      },
      () => clock.nowMs,
    )

    uses.recordUse(token)
    await expect(uses.flush()).rejects.toThrow('broken')
    isBroken = false
    await uses.flush()
    expect((await read(opened.store)).lastUsedAtMs).toBeUndefined()
    clock.nowMs += 5
    uses.recordUse(token)
    await uses.flush()

    expect((await read(opened.store)).lastUsedAtMs).toBe(START_MS + 5)
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

async function createToken(store: Store): Promise<Token> {
  await store.createToken(NEW_TOKEN)
  return read(store)
}

async function read(store: Store): Promise<Token> {
  const token = await store.findToken(HASH)
  if (token === undefined) throw new Error('the token is gone')
  return token
}

/** Uses that are written to the store, with each write that was asked of it. */
function collect(store: Store, clock: { readonly nowMs: number }) {
  const writes: [id: number, atMs: number][][] = []
  const uses = collectTokenUses(
    async (lastUsedAtMs) => {
      writes.push([...lastUsedAtMs])
      await store.touchTokens(lastUsedAtMs)
    },
    () => clock.nowMs,
  )
  return { uses, writes }
}
