/** The smallest and the largest identifier: a two's complement integer of 64 bits. */
export const INT64_MIN = -(2n ** 63n)
export const INT64_MAX = 2n ** 63n - 1n

const INT64_DIGITS_MAX = 19
const DECIMAL = /^(?:0|-?[1-9][0-9]{0,18})$/
const JSON_NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** Whether an integer is an int64. */
export const isInt64 = (value: bigint): boolean => value >= INT64_MIN && value <= INT64_MAX

/** Reads the one decimal notation of an int64, `0|-?[1-9][0-9]*`. Anything else is `undefined`. */
export function parseInt64Decimal(text: string): bigint | undefined {
  if (!DECIMAL.test(text)) return undefined
  const value = BigInt(text)
  return isInt64(value) ? value : undefined
}

/**
 * Reads the digits of a JSON number (RFC 8259 §6) as the int64 that it is exactly equal to: `5`, `5.0` and `50e-1` are
 * all 5. A number that is not whole or not an int64 is `undefined`. Time is linear in the text, whatever the exponent.
 */
export function parseInt64JsonNumber(source: string): bigint | undefined {
  if (DECIMAL.test(source)) return parseInt64Decimal(source)
  const match = JSON_NUMBER.exec(source)
  if (!match) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = withoutOuterZeros(whole + fraction)
  if (digits.text === '') return 0n
  const trailingZeros = Number(exponent) - fraction.length + digits.droppedAtEnd
  if (trailingZeros < 0 || digits.text.length + trailingZeros > INT64_DIGITS_MAX) return undefined
  const value = BigInt(sign + digits.text + '0'.repeat(trailingZeros))
  return isInt64(value) ? value : undefined
}

/** A loop, because `/0+$/` takes quadratic time on zeros that are followed by another digit. */
function withoutOuterZeros(digits: string): { text: string; droppedAtEnd: number } {
  let start = 0
  let end = digits.length
  while (start < end && digits.charCodeAt(start) === ZERO) start++
  while (end > start && digits.charCodeAt(end - 1) === ZERO) end--
  return { text: digits.slice(start, end), droppedAtEnd: digits.length - end }
}

const ZERO = 0x30
