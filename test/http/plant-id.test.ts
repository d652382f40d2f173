import { describe, expect, test } from 'bun:test'
import { INT64_MAX, INT64_MIN } from '../../src/domain/int64.ts'
import { startService } from './support/service.ts'
import { TRANSPORTS } from './support/transports.ts'

/** Ids with percent-encodings, as they are written in the path. */
const ENCODED_IDS = { '%35': 5, '%2D7': -7, '1%30': 10, '%2d%37': -7, '%31%32%33': 123 }

/** Values of `{id}` that are refused, as they are written in the path. */
const REFUSED_IDS = [
  ...['-0', '+1', '01', '1.0', '1.5', '1e0', '5e-1', '-01', '00', '-', '--1', '0x1', '0b1', '1n', '1_0', '1,0', '1-1'],
  ...['abc', 'NaN', 'Infinity', 'null', 'undefined', '*', '%2B1', '%2D0', '%30%31', '1%2E0', '%201', '1%20', '1%0A'],
  ...['%091', '1%00', '%00', '1%2F', '%2F1', '1%2F1', '1%3F', '1%23', '1;x=1', '1:1'],
  ...['%EF%BC%91', '%D9%A1', '%E2%88%921'],
  // Decoded once, these are not ids any more; decoded twice, they would be.
  ...['%2531', '%252D1', '1%2530'],
  // No percent-encoding of UTF-8 at all.
  ...['%', '%1', '%zz', '1%', '%ff', '%c3', '%ED%A0%80'],
  ...[String(INT64_MAX + 1n), String(INT64_MIN - 1n), '18446744073709551617', '9'.repeat(5000), `-${'9'.repeat(5000)}`],
]

describe.each(TRANSPORTS)('the id in a path, $name', (transport) => {
  test('is percent-decoded once', async () => {
    await using service = await startService(transport)

    for (const [encoded, id] of Object.entries(ENCODED_IDS)) {
      await service.create({ id, name: String(id) })
      expect([encoded, (await service.get(encoded)).body]).toEqual([encoded, { name: String(id) }])
      expect([encoded, (await service.delete(encoded)).status]).toEqual([encoded, 204])
    }
    expect(await service.names()).toEqual([])
  })

  test.each(['GET', 'DELETE'])('is refused if it is not a decimal int64: %s', async (method) => {
    await using service = await startService(transport)
    for (const id of [0, 1, -1, 10]) await service.create({ id, name: String(id) })

    for (const id of REFUSED_IDS) {
      const { status, body } = await service.request(method, `/plants/${id}`)
      const refusal = { error: 40004, message: expect.stringMatching(/\w/) }
      expect({ id, status, body }).toEqual({ id, status: 400, body: refusal })
    }
    expect(await service.names()).toEqual(['-1', '0', '1', '10'])
  })
})
