import fc from 'fast-check'
import { IS_LONG } from './long.ts'
import { seedsOf } from './random.ts'

/** How often a property is tried. `PROPERTY_RUNS=5000` tries longer than `bun run check` does. */
const RUNS = Number(process.env.PROPERTY_RUNS ?? (IS_LONG ? 1000 : 100))

/**
 * Tries whether a property holds for many values, `valuesPerRun` in each run, of the seed in `PROPERTY_SEED`. Prints that seed.
 * Rejects with the smallest counterexample that was found.
 */
export async function expectProperty<T>(
  name: string,
  values: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
  valuesPerRun = 1,
): Promise<void> {
  const [seed = 1] = seedsOf('PROPERTY_SEED', 1)
  console.log(`${name}: PROPERTY_SEED=${seed} PROPERTY_RUNS=${RUNS}`)
  await fc.assert(fc.asyncProperty(values, holds), { seed, numRuns: Math.ceil(RUNS * valuesPerRun) })
}
