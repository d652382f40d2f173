/** The smallest and the largest identifier: a two's complement integer of 64 bits. */
export const INT64_MIN = -(2n ** 63n)
export const INT64_MAX = 2n ** 63n - 1n
export const INT64_RULE = `a whole number from ${INT64_MIN} to ${INT64_MAX}`

const INT64_DIGITS_MAX = 19
const DECIMAL = /^(?:0|-?[1-9][0-9]{0,18})$/
const JSON_NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** Reads an int64 in its only decimal notation, `0|-?[1-9][0-9]*`. Returns `undefined` for any other text. */
export const parseInt64Decimal = (text: string): bigint | undefined => (DECIMAL.test(text) ? toInt64(text) : undefined)

/**
 * Reads a JSON number (RFC 8259 §6) as the int64 that the number is exactly equal to: `5`, `5.0` and `50e-1` are all 5. Returns
 * `undefined` for a fraction, for a number past int64 and for any other text. Takes linear time, whatever the exponent.
 */
export function parseInt64JsonNumber(source: string): bigint | undefined {
  if (DECIMAL.test(source)) return toInt64(source)
  const match = JSON_NUMBER.exec(source)
  if (!match) return undefined
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = (whole + fraction).replace(/^0+/, '')
  let end = digits.length
  // A loop, because `/0+$/` takes quadratic time for zeros that another digit follows.
  while (digits[end - 1] === '0') end--
  if (end === 0) return 0n
  const zeros = Number(exponent) - fraction.length + digits.length - end
  if (zeros < 0 || end + zeros > INT64_DIGITS_MAX) return undefined
  return toInt64(sign + digits.slice(0, end) + '0'.repeat(zeros))
}

function toInt64(decimal: string): bigint | undefined {
  const value = BigInt(decimal)
  return value === BigInt.asIntN(64, value) ? value : undefined
}
