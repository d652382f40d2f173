import fc from 'fast-check'

/** How often a property is tried. `PROPERTY_RUNS=5000` tries longer than `bun run check` does. */
const RUNS = Number(process.env.PROPERTY_RUNS ?? 100)
const RUN_MAX_MS = 1000

/** The time for a test of a property, on a busy machine too. */
export const PROPERTY_TIMEOUT_MS = 20_000 + RUNS * RUN_MAX_MS

/**
 * Tries whether a property holds for random values, `valuesPerRun` in each run. Prints the seed: with `PROPERTY_SEED` the values are the same
 * again. Rejects with the smallest counterexample that was found.
 */
export async function expectProperty<T>(
  name: string,
  values: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
  valuesPerRun = 1,
): Promise<void> {
  const seed = Number(process.env.PROPERTY_SEED ?? crypto.getRandomValues(new Int32Array(1))[0])
  console.log(`${name}: PROPERTY_SEED=${seed} PROPERTY_RUNS=${RUNS}`)
  await fc.assert(fc.asyncProperty(values, holds), { seed, numRuns: RUNS * valuesPerRun })
}
