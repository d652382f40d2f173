import { expect, test } from 'bun:test'
import { Histogram } from '../../src/http/statistics.ts'

test('a histogram counts each value at the first bound that is not smaller, and sums all values', () => {
  const sizes = new Histogram([1, 10])
  expect(sizes).toMatchObject({ bounds: [1, 10], counts: [0, 0, 0], sum: 0 })

  for (const value of [0, 1, 1.5, 10, 10.5, 1000]) sizes.observe(value)

  expect(sizes).toMatchObject({ bounds: [1, 10], counts: [2, 2, 2], sum: 1023 })
})
