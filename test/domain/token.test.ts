import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import {
  hashToken,
  isTokenText,
  providerUserName,
  TOKEN_RANDOM_BYTES,
  tokenState,
  tokenText,
  USER_NAME,
} from '../../src/domain/token.ts'
import { ACTIVE_TOKEN } from '../support/tokens.ts'

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

const LIMITED = { expiresAtMs: 1000, userBlockedAtMs: 0 }

test.each([
  ['active', {}, Number.MAX_SAFE_INTEGER],
  ['active', { expiresAtMs: 1000 }, 999],
  ['expired', { expiresAtMs: 1000 }, 1000],
  ['blocked', LIMITED, 999],
  ['expired', LIMITED, 1000],
  // A revocation holds at once, also before its time.
  ['revoked', { ...LIMITED, revokedAtMs: 500 }, 499],
  ['revoked', { ...LIMITED, revokedAtMs: 500 }, 2000],
] as const)('a token is %s with %j at %d', (state, times, nowMs) => {
  expect(tokenState({ ...ACTIVE_TOKEN, ...times }, nowMs)).toBe(state)
})

test("the name of an identity provider's user is oidc. and the base64url of the SHA-256 of issuer, NUL and subject", () => {
  const [issuer, subject] = ['https://login.example.org', '🌱'.repeat(1000)]
  const name = providerUserName(issuer, subject)

  expect(name).toBe(`oidc.${createHash('sha256').update(`${issuer}\0${subject}`).digest('base64url')}`)
  expect(name).toMatch(/^oidc\.[\w-]{43}$/)
  expect(name).toMatch(USER_NAME)
})
