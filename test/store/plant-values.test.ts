import { expect, test } from 'bun:test'
import { PLANT_FIELDS } from '../../src/domain/plant.ts'
import type { Connections } from '../../src/store/postgres/connections.ts'
import type { Call } from '../../src/store/sqlite/writing/writes.ts'
import { FERN } from './fixtures.ts'

test('a create with a value too few or too many does not compile', () => {
  const [, ...missingOne] = FERN
  type Values = NonNullable<Parameters<Connections['writePlant']>[0]['values']>
  // The compiler checks these lines: `tsc` fails where one of them is no error.
  // @ts-expect-error a value too few
  const short: [Call, Values] = [['createPlant', 1, '1', ...missingOne], FERN]
  // @ts-expect-error a value too many
  const long: [Call, Values] = [['createPlant', 1, '1', ...FERN, null], FERN]
  // @ts-expect-error a value too few
  const shortOnPostgres: Values = missingOne
  // @ts-expect-error a value too many
  const longOnPostgres: Values = [...FERN, null]

  const lengths = [short[0].length - 3, long[0].length - 3, shortOnPostgres.length, longOnPostgres.length]
  expect(lengths).toEqual([-1, 1, -1, 1].map((more) => PLANT_FIELDS.length + more))
})
