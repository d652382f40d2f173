import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { INT64_MAX, INT64_MIN } from '../../src/domain/int64.ts'
import { LIMIT_MAX } from '../../src/domain/store.ts'
import { expectProperty } from '../support/properties.ts'
import { type Service, startService } from './support/service.ts'
import { OVER_TCP } from './support/transports.ts'

/** Texts for each run of a property, because one takes a millisecond. */
const TEXTS_PER_RUN = 5
const MANY_DIGITS = '9'.repeat(5000)

/** Whole numbers as JavaScript writes them, also at the limits and beyond. */
const anyNumber = fc.oneof(
  fc.integer({ min: -20, max: 20 }).map(String),
  fc.bigInt({ min: 2n * INT64_MIN, max: 2n * INT64_MAX }).map(String),
  fc
    .tuple(fc.constantFrom(0n, BigInt(LIMIT_MAX), INT64_MAX, INT64_MIN), fc.integer({ min: -1, max: 1 }))
    .map(([limit, more]) => String(limit + BigInt(more))),
)
/** What numbers have in other notations, and digits of other scripts. */
const anyPart = fc.constantFrom(
  ...'0123456789-+.,eExnb_ \n\t\0%#?;:/[]"',
  '٥',
  '５',
  '−',
  '00',
  'NaN',
  'true',
  '1e',
  '0x',
  '%31',
)
/** A number, a number with something in it, or something else. It may be written with percent-encodings where it needs none. */
const anyText = fc.oneof(
  anyNumber,
  fc.tuple(anyNumber, anyPart, fc.nat(20)).map(([number, part, at]) => number.slice(0, at) + part + number.slice(at)),
  fc.array(anyPart, { maxLength: 4 }).map((parts) => parts.join('')),
  fc.constantFrom(MANY_DIGITS, `-${MANY_DIGITS}`, '', 'Infinity', 'null'),
)
const anyEncoded = fc.tuple(anyText, fc.boolean()).map(([text, isAll]) => {
  const all = () => [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
  return { text, encoded: isAll && text.length < 100 ? all() : encodeURIComponent(text) }
})

/** Whether a text is how JavaScript writes an int64. */
function isInt64(text: string): boolean {
  try {
    const number = BigInt(text)
    return String(number) === text && number >= INT64_MIN && number <= INT64_MAX
  } catch {
    return false
  }
}
const isLimit = (text: string) => isInt64(text) && BigInt(text) >= 0n && BigInt(text) <= BigInt(LIMIT_MAX)

/** The code of an error, or the status. */
const codeOf = async (service: Service, method: string, path: string) => {
  const { status, body } = await service.request(method, path)
  return body?.error ?? status
}

test.each(OVER_TCP)(
  '`limit` is 0 to 2147483647, `after` and the id in a path are an int64, and each is written in one way, $name',
  async (transport) => {
    await using service = await startService(transport)

    await expectProperty(
      'numbers',
      anyEncoded,
      async ({ text, encoded }) => {
        expect(await codeOf(service, 'GET', `/plants?limit=${encoded}`)).toBe(isLimit(text) ? 200 : 40003)
        expect(await codeOf(service, 'GET', `/plants?x=1&after=${encoded}`)).toBe(isInt64(text) ? 200 : 40003)
        if (['', '.', '..'].includes(text)) return
        for (const method of ['GET', 'DELETE'])
          expect(await codeOf(service, method, `/plants/${encoded}`)).toBe(isInt64(text) ? 40402 : 40004)
        // A put without a body is refused for that.
        expect(await codeOf(service, 'PUT', `/plants/${encoded}`)).toBe(isInt64(text) ? 41501 : 40004)
      },
      TEXTS_PER_RUN,
    )
    // These are no percent-encoding of UTF-8.
    for (const id of ['%', '%1', '%zz', '1%', '%ff', '%c3', '%ED%A0%80'])
      expect([id, await codeOf(service, 'GET', `/plants/${id}`)]).toEqual([id, 40004])
  },
)
