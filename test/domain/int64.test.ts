import { describe, expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN, parseInt64JsonNumber } from '../../src/domain/int64.ts'

const MEGABYTE = 1_000_000
/** Linear time is a few milliseconds for a megabyte; quadratic time is minutes. */
const LINEAR_TIME_MAX_MS = 1000

/** Numbers as JSON writes them, and the int64 that each one is exactly equal to. */
const NOTATIONS: readonly (readonly [int64: bigint, sources: readonly string[]])[] = [
  [0n, ['0', '-0', '-0.0', '0.000', '0e5', '-0e-5', '0e99999']],
  [1n, ['1', '100e-2']],
  [5n, ['5', '5.0', '5e0', '5E+0', '50e-1', '0.5e1', '500.000e-2']],
  [15n, ['1.5e1']],
  [-5n, ['-5.0', '-50e-1']],
  [10n ** 18n, ['1e18', '1E+18', '10000000000000000000e-1']],
  [9007199254740993n, ['9007199254740993', '9007199254740993.0', '9007199254740993e0', '900719925474099.3e1']],
  [INT64_MAX, ['9223372036854775807', '9223372036854775807.0', '9.223372036854775807e18', '92233720368547758070e-1']],
  [INT64_MIN, ['-9223372036854775808', '-9.223372036854775808E18', '-92233720368547758080000e-4']],
]

const LONG: readonly (readonly [name: string, source: string, int64: bigint | undefined])[] = [
  ['a megabyte of digits', '9'.repeat(MEGABYTE), undefined],
  ['a megabyte of digits after the point', `5.${'9'.repeat(MEGABYTE)}`, undefined],
  ['1e and a megabyte of digits', `1e${'9'.repeat(MEGABYTE)}`, undefined],
  ['0e and a megabyte of digits', `0e${'9'.repeat(MEGABYTE)}`, 0n],
  ['1e and a megabyte of zeros and 2', `1e${'0'.repeat(MEGABYTE)}2`, 100n],
  ['0.000…1', `0.${'0'.repeat(MEGABYTE)}1`, undefined],
  ['0.000…1 with the exponent that makes it 1', `0.${'0'.repeat(MEGABYTE)}1e${MEGABYTE + 1}`, 1n],
  ['1000…0 with the exponent that makes it 1', `1${'0'.repeat(MEGABYTE)}e-${MEGABYTE}`, 1n],
]

describe('parseInt64JsonNumber', () => {
  test.each(NOTATIONS)('reads %p from each of its notations', (int64, sources) => {
    for (const source of sources) expect([source, parseInt64JsonNumber(source)]).toEqual([source, int64])
  })

  test.each([
    ...['5.5', '0.1', '-0.5', '1e-3', '15e-1', '1e-400', '4.9999999999999999999999', '5.0000000000000000000001'],
    ...['9223372036854775807.5', '9223372036854775808', '9223372036854775808.0', '9.223372036854775808e18'],
    ...['92233720368547758071e-1', '-9223372036854775809', '1e19', '1e400', '-1e400'],
    ...['', '-', '1e', '.5', '5.', 'x', 'NaN', 'Infinity', '0x10', '1n'],
  ])('refuses %p', (source) => {
    expect(parseInt64JsonNumber(source)).toBeUndefined()
  })

  test.each(LONG)('decides %s in linear time', (_, source, int64) => {
    const startMs = performance.now()

    expect(parseInt64JsonNumber(source)).toBe(int64)

    expect(performance.now() - startMs).toBeLessThan(LINEAR_TIME_MAX_MS)
  })
})
