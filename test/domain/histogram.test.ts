import { expect, test } from 'bun:test'
import { histogram } from '../../src/domain/histogram.ts'

test('a histogram counts values by the first bound that they do not pass, and their sum', () => {
  const sizes = histogram([1, 10])
  for (const value of [0, 1, 1.5, 10, 10.5, 1000]) sizes.observe(value)

  expect({ bounds: sizes.bounds, counts: sizes.counts, sum: sizes.sum }).toEqual({
    bounds: [1, 10],
    counts: [2, 2, 2],
    sum: 1023,
  })
})

test('a new histogram has counted nothing', () => {
  const { counts, sum } = histogram([1])

  expect({ counts, sum }).toEqual({ counts: [0, 0], sum: 0 })
})
