import { expect, test } from 'bun:test'
import { PLANT_FIELDS } from '../../src/domain/plant.ts'
import type { Connections } from '../../src/store/postgres/connections.ts'
import type { Call } from '../../src/store/sqlite/writing/writes.ts'
import { FERN } from './fixtures.ts'

test('a create with a value too few or too many does not compile', () => {
  const [, ...missingOne] = FERN
  const call: Call = ['createPlant', 1, '1', ...FERN]
  const lengths: number[] = []
  const create = (write: Connections['writePlant']) => {
    void write('create', { user: 1, id: 1n, values: FERN })
    // The compiler checks these lines: `tsc` fails where one of them is no error.
    // @ts-expect-error a value too few
    void write('create', { user: 1, id: 1n, values: missingOne })
    // @ts-expect-error a value too many
    void write('create', { user: 1, id: 1n, values: [...FERN, null] })
  }
  // @ts-expect-error a value too few
  const shortCall: Call = ['createPlant', 1, '1', ...missingOne]
  // @ts-expect-error a value too many
  const longCall: Call = ['createPlant', 1, '1', ...FERN, null]

  create(async (_, { values }) => void lengths.push(values.length))
  const expected = [0, -1, 1].map((more) => PLANT_FIELDS.length + more)
  expect(lengths).toEqual(expected)
  expect([call, shortCall, longCall].map(({ length }) => length - 3)).toEqual(expected)
})
