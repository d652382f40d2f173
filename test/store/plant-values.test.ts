import { expect, test } from 'bun:test'
import { PLANT_FIELDS, type PlantValues } from '../../src/domain/plant.ts'
import type { PlantWrite } from '../../src/store/postgres/writing/statements.ts'
import type { Call } from '../../src/store/sqlite/writing/writes.ts'
import { FERN } from './fixtures.ts'

test('a create with a value too few or too many does not compile', () => {
  const [, ...missingOne] = FERN
  const call: Call = ['createPlant', 1, 1n, ...FERN]
  const write: PlantWrite<PlantValues> = { user: 1, id: 1n, values: FERN }

  // The compiler checks these lines: `tsc` fails where one of them is no error.
  // @ts-expect-error a value too few
  const shortCall: Call = ['createPlant', 1, 1n, ...missingOne]
  // @ts-expect-error a value too many
  const longCall: Call = ['createPlant', 1, 1n, ...FERN, null]
  // @ts-expect-error a value too few
  const shortWrite: PlantWrite<PlantValues> = { user: 1, id: 1n, values: missingOne }
  // @ts-expect-error a value too many
  const longWrite: PlantWrite<PlantValues> = { user: 1, id: 1n, values: [...FERN, null] }

  const lengths = [shortCall, call, longCall].map(({ length }) => length - 3)
  expect(lengths).toEqual([-1, 0, 1].map((more) => PLANT_FIELDS.length + more))
  expect([shortWrite, write, longWrite].map(({ values }): number => values.length)).toEqual(lengths)
})
