import { describe, expect, test } from 'bun:test'
import { recordTokenUses, TOKEN_USE_RESOLUTION_MS } from '../../src/http/token-uses.ts'
import { createLogger } from '../../src/log.ts'
import { createToken } from '../store/fixtures.ts'
import { SQLITE_STORES } from '../support/stores.ts'

const START_MS = 1_700_000_000_000
const minute = (minutes: number) => START_MS + minutes * TOKEN_USE_RESOLUTION_MS

describe('the recorded uses of tokens', () => {
  test('reach the store with the next flush, at the time of the first use', async () => {
    await using opened = await openWithUses()
    const { token, uses, writes, clock } = opened

    uses.recordUse(token)
    clock.nowMs += 10
    uses.recordUse(token)
    expect(writes).toEqual([])
    await uses.flush()

    expect(writes).toEqual([[[token.id, START_MS]]])
    expect((await opened.read()).lastUsedAtMs).toBe(START_MS)
  })

  test('reach the store together once a minute, but each token has its own minute', async () => {
    await using opened = await openWithUses()
    const { token, uses, writes, clock } = opened
    const { token: other } = await createToken(opened.store, 'you')

    uses.recordUse(token)
    await uses.flush()
    for (const minutes of [0.5, 1, 1.5]) {
      clock.nowMs = minute(minutes)
      uses.recordUse(token)
      uses.recordUse(other)
      if (minutes !== 1) await uses.flush()
    }

    expect(writes).toEqual([
      [[token.id, minute(0)]],
      [[other.id, minute(0.5)]],
      [
        [token.id, minute(1)],
        [other.id, minute(1.5)],
      ],
    ])
  })

  test('replace a use in the future, but not a later one that another process has written', async () => {
    for (const [storedAtMs, expectedMs] of [
      [minute(2), minute(2)],
      [minute(9), minute(1)],
    ] as const) {
      await using opened = await openWithUses()
      const { store, token, uses, clock } = opened
      clock.nowMs = minute(1)
      uses.recordUse(token)
      await store.touchTokens(new Map([[token.id, storedAtMs]]), storedAtMs)

      clock.nowMs = minute(3)
      await uses.flush()

      expect((await opened.read()).lastUsedAtMs).toBe(expectedMs)
    }
  })

  test('are written with the next ones if the store rejects them', async () => {
    await using opened = await openWithUses()
    const { token, uses, writes, clock, log } = opened
    const { token: other } = await createToken(opened.store, 'you')

    uses.recordUse(token)
    opened.failNext = true
    await uses.flush()
    expect(writes).toEqual([])
    clock.nowMs += 1
    uses.recordUse(token)
    uses.recordUse(other)
    await uses.flush()

    expect(writes).toEqual([
      [
        [token.id, START_MS],
        [other.id, START_MS + 1],
      ],
    ])
    expect(log()).toContain('"reason":"Error: broken","msg":"the last use of tokens could not be written"')
  })
})

/** A store with a token that was never used, and its uses with each write. */
async function openWithUses() {
  const [sqlite] = SQLITE_STORES
  if (sqlite === undefined) throw new Error('there is no store')
  const { store, [Symbol.asyncDispose]: close } = await sqlite.open()
  const { hash, token } = await createToken(store, 'me')
  const clock = { nowMs: START_MS }
  const writes: [id: number, atMs: number][][] = []
  const lines: string[] = []
  const touchTokens = async (lastUsedAtMs: ReadonlyMap<number, number>, nowMs: number) => {
    if (opened.failNext) {
      opened.failNext = false
      throw new Error('broken')
    }
    await store.touchTokens(lastUsedAtMs, nowMs)
    writes.push([...lastUsedAtMs])
  }
  const log = createLogger('warn', { write: (line) => lines.push(line) })
  const uses = recordTokenUses({ touchTokens }, log, () => clock.nowMs)
  const opened = {
    ...{ store, token, uses, writes, clock },
    failNext: false,
    log: () => lines.join(''),
    read: async () => (await store.findToken(hash)) ?? token,
    async [Symbol.asyncDispose]() {
      uses.stop()
      await close()
    },
  }
  return opened
}
