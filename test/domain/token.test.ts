import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import {
  hashToken,
  isTokenText,
  providerUserName,
  TOKEN_RANDOM_BYTES,
  type Token,
  tokenState,
  tokenText,
  USER_NAME,
} from '../../src/domain/token.ts'

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const EXAMPLE = tokenText(new Uint8Array(TOKEN_RANDOM_BYTES).map((_, index) => index * 37 + 11))

const fromBase62 = (text: string): bigint =>
  [...text].reduce((value, digit) => value * 62n + BigInt(BASE62.indexOf(digit)), 0n)

describe("a token's text", () => {
  test.each([
    ['zero', new Uint8Array(32)],
    ['the largest number', new Uint8Array(32).fill(255)],
    ['random bytes', crypto.getRandomValues(new Uint8Array(TOKEN_RANDOM_BYTES))],
  ])('is plst_, 43 base62 characters of the bytes, and 6 of their CRC-32: %s', (_, bytes) => {
    const text = tokenText(bytes)

    expect(text).toMatch(/^plst_[0-9A-Za-z]{49}$/)
    const secret = text.slice(5, 48)
    expect(fromBase62(secret)).toBe(BigInt(`0x${bytes.toHex()}`))
    expect(fromBase62(text.slice(48))).toBe(BigInt(crc32(secret)))
    expect(isTokenText(text)).toBe(true)
  })

  test('is refused if any one character is changed', () => {
    const changed = [...EXAMPLE].flatMap((original, index) =>
      [...BASE62, '_', '-', ' ']
        .filter((other) => other !== original)
        .map((other) => EXAMPLE.slice(0, index) + other + EXAMPLE.slice(index + 1)),
    )

    expect(changed).toHaveLength(EXAMPLE.length * 64)
    expect(changed.filter(isTokenText)).toEqual([])
  })

  test.each([
    '',
    'plst_',
    EXAMPLE.slice(0, -1),
    `${EXAMPLE}0`,
    `${EXAMPLE}\n`,
    ` ${EXAMPLE}`,
    EXAMPLE.slice('plst_'.length),
    EXAMPLE.replace('plst_', 'PLST_'),
    EXAMPLE + EXAMPLE,
    `plst_${'é'.repeat(49)}`,
    `plst_${'0'.repeat(49)}`,
  ])('is never %p', (text) => {
    expect(isTokenText(text)).toBe(false)
  })
})

test('the hash of a token is the SHA-256 of its text, 32 bytes', () => {
  const hash = hashToken(EXAMPLE)

  expect(hash).toHaveLength(32)
  expect(Buffer.from(hash)).toEqual(createHash('sha256').update(EXAMPLE).digest())
})

describe('a token', () => {
  const token: Token = {
    ...{ id: 1, userId: 1, userName: 'me', scope: 'write', label: undefined, createdAtMs: 0 },
    ...{ expiresAtMs: undefined, revokedAtMs: undefined, lastUsedAtMs: undefined },
    ...{ replacedBy: undefined, userBlockedAtMs: undefined },
  }
  const statesOf = (times: Partial<Token>, atMs: readonly number[]) =>
    atMs.map((nowMs) => tokenState({ ...token, ...times }, nowMs))

  test('is active for ever without an expiry', () => {
    expect(statesOf({}, [0, Number.MAX_SAFE_INTEGER])).toEqual(['active', 'active'])
  })

  test('is expired from the millisecond of the expiry on', () => {
    expect(statesOf({ expiresAtMs: 1000 }, [999, 1000, 1001])).toEqual(['active', 'expired', 'expired'])
  })

  test('is blocked while its user is, unless it is expired or revoked', () => {
    const blocked = { userBlockedAtMs: 0, expiresAtMs: 1000 }
    expect(statesOf(blocked, [999, 1000])).toEqual(['blocked', 'expired'])
    expect(statesOf({ ...blocked, revokedAtMs: 0 }, [999, 1000])).toEqual(['revoked', 'revoked'])
  })

  test('is revoked at once after a revocation, also before its time and after the expiry', () => {
    const states = statesOf({ expiresAtMs: 1000, revokedAtMs: 500 }, [0, 499, 500, 2000])

    expect(states).toEqual(Array(4).fill('revoked'))
  })
})

describe("the name of an identity provider's user", () => {
  test('is oidc. and the base64url of the SHA-256 of issuer, NUL and subject, whatever they are', () => {
    for (const [issuer, subject] of [
      ['https://login.example.org', 'ada'],
      ['https://login.example.org', '🌱'.repeat(1000)],
    ] as const) {
      const name = providerUserName(issuer, subject)

      expect(name).toBe(`oidc.${createHash('sha256').update(`${issuer}\0${subject}`).digest('base64url')}`)
      expect(name).toMatch(/^oidc\.[\w-]{43}$/)
      expect(name).toMatch(USER_NAME)
    }
  })
})
