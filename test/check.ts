/**
 * `bun run check`: runs every step in order and stops at the first one that fails, with its exit code. At the end prints
 * what each step took, and the time of all beside the budget. With CI=true it fails above the budget, which
 * CHECK_BUDGET_SECONDS raises.
 */

/** What all steps together may take on two cores. What does not fit belongs to `bun run check:long`. */
const BUDGET_SECONDS = Number(process.env.CHECK_BUDGET_SECONDS ?? 240)

/** Scripts of package.json, cheapest first. `calls` mostly waits for timers of a server, so it runs beside the first two. */
const STEPS = [['lint', 'types', 'calls'], 'test', 'build', 'test:executable', 'test:fault', 'test:ship'].map((step) =>
  [step].flat(),
)

const seconds = new Map<string, number>()

const secondsSince = (startMs: number): number => (performance.now() - startMs) / 1000

/** Resolves to the exit code. */
async function run(step: string, args: readonly string[]): Promise<number> {
  const startMs = performance.now()
  const exitCode = await Bun.spawn([process.execPath, ...args], { stdio: ['ignore', 'inherit', 'inherit'] }).exited
  seconds.set(step, secondsSince(startMs))
  if (exitCode !== 0) console.error(`\n${step} failed with exit code ${exitCode}`)
  return exitCode
}

/** Exits with the first code that is not 0. */
function demand(exitCodes: readonly number[]): void {
  const failed = exitCodes.find((each) => each !== 0)
  if (failed !== undefined) process.exit(failed)
}

const startMs = performance.now()
demand([await run('install', ['install', '--frozen-lockfile'])])
for (const steps of STEPS) demand(await Promise.all(steps.map((step) => run(step, ['run', step]))))

const total = secondsSince(startMs)
console.log()
for (const [step, each] of seconds) console.log(`${each.toFixed(0).padStart(5)} s  ${step}`)
console.log(`${total.toFixed(0).padStart(5)} s  in all; the budget on two cores is ${BUDGET_SECONDS} s`)
if (process.env.CI === 'true' && !(total <= BUDGET_SECONDS)) {
  console.error('\nThe check took longer than its budget. On a slower machine, set CHECK_BUDGET_SECONDS.')
  process.exitCode = 1
}

export {}
