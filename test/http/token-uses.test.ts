import { describe, expect, test } from 'bun:test'
import { recordTokenUses, TOKEN_USE_RESOLUTION_MS } from '../../src/http/token-uses.ts'
import { createLogger } from '../../src/log.ts'
import { createToken } from '../store/fixtures.ts'
import { SQLITE_STORES } from '../support/stores.ts'

const minute = (minutes: number) => 1_700_000_000_000 + minutes * TOKEN_USE_RESOLUTION_MS

// The model of socket/plants-model.test.ts proves which of several uses a store keeps.
describe.each(SQLITE_STORES.slice(0, 1))('the recorded uses of tokens, $name', ({ open }) => {
  test('reach the store with the next flush, at most once a minute for each token, at the time of the first use', async () => {
    await using opened = await openWithUses(open)
    const { store, first, other, uses, clock, stored } = opened

    uses.recordUse(first)
    expect(await stored()).toEqual([undefined, undefined])
    await uses.flush()
    expect(await stored()).toEqual([minute(0), undefined])
    for (const minutes of [0.5, 1, 1.5]) {
      clock.nowMs = minute(minutes)
      uses.recordUse(first)
      uses.recordUse(other)
      if (minutes === 0.5) await uses.flush()
    }
    expect(await stored()).toEqual([minute(0), minute(0.5)])
    await uses.flush()
    expect(await stored()).toEqual([minute(1), minute(1.5)])
    // A use that a wrong clock has left in the future does not count.
    await store.touchTokens(new Map([[first.id, minute(9)]]), minute(9))
    clock.nowMs = minute(3)
    uses.recordUse({ ...first, lastUsedAtMs: minute(9) })
    await uses.flush()
    expect(await stored()).toEqual([minute(3), minute(1.5)])
  })

  test('are written with the next ones if the store rejects them, unless newer ones have come meanwhile', async () => {
    await using opened = await openWithUses(open)
    const { first, other, uses, clock, stored, log } = opened

    uses.recordUse(first)
    opened.failNext = true
    await uses.flush()
    expect(await stored()).toEqual([undefined, undefined])
    clock.nowMs += 1
    uses.recordUse(first)
    uses.recordUse(other)
    await uses.flush()
    expect(await stored()).toEqual([minute(0), minute(0) + 1])
    clock.nowMs = minute(1)
    uses.recordUse(first)
    opened.failNext = true
    const rejected = uses.flush()
    clock.nowMs = minute(2)
    uses.recordUse(first)
    await rejected
    await uses.flush()

    expect(await stored()).toEqual([minute(2), minute(0) + 1])
    expect(log()).toContain('"reason":"Error: broken","msg":"the last use of tokens could not be written"')
  })
})

/** A store with two tokens that were never used, and a clock. */
async function openWithUses(open: (typeof SQLITE_STORES)[number]['open']) {
  const { store, [Symbol.asyncDispose]: close } = await open()
  const [{ token: first }, { token: other }] = [await createToken(store, 'me'), await createToken(store, 'you')]
  const clock = { nowMs: minute(0) }
  const lines: string[] = []
  const touchTokens: typeof store.touchTokens = async (...asked) => {
    if (opened.failNext) {
      opened.failNext = false
      throw new Error('broken')
    }
    await store.touchTokens(...asked)
  }
  const log = createLogger('warn', { write: (line) => lines.push(line) })
  const uses = recordTokenUses({ ...store, touchTokens }, log, () => clock.nowMs)
  const opened = {
    ...{ store, first, other, uses, clock },
    failNext: false,
    log: () => lines.join(''),
    stored: async () => (await store.listTokens()).map(({ lastUsedAtMs }) => lastUsedAtMs),
    async [Symbol.asyncDispose]() {
      uses.stop()
      await close()
    },
  }
  return opened
}
