/**
 * `bun run check`: runs every step in order and stops at the first one that fails, with its exit code. At the end prints
 * what each step took, and the sum beside the budget. With CI=true it fails above the budget, which CHECK_BUDGET_SECONDS raises.
 */

/** What all steps together may take on two cores. What does not fit belongs to `bun run check:long`. */
const BUDGET_SECONDS = Number(process.env.CHECK_BUDGET_SECONDS ?? 240)

/** Scripts of package.json, cheapest first. */
const STEPS = ['lint', 'types', 'calls', 'test', 'build', 'test:executable', 'test:fault', 'test:ship']

const seconds = new Map<string, number>()

async function run(step: string, args: readonly string[]): Promise<void> {
  const startMs = performance.now()
  const exitCode = await Bun.spawn([process.execPath, ...args], { stdio: ['ignore', 'inherit', 'inherit'] }).exited
  seconds.set(step, (performance.now() - startMs) / 1000)
  if (exitCode === 0) return
  console.error(`\n${step} failed with exit code ${exitCode}`)
  process.exit(exitCode)
}

await run('install', ['install', '--frozen-lockfile'])
for (const step of STEPS) await run(step, ['run', step])

const sum = [...seconds.values()].reduce((total, each) => total + each, 0)
console.log()
for (const [step, each] of seconds) console.log(`${each.toFixed(0).padStart(5)} s  ${step}`)
console.log(`${sum.toFixed(0).padStart(5)} s  in all; the budget on two cores is ${BUDGET_SECONDS} s`)
if (process.env.CI === 'true' && !(sum <= BUDGET_SECONDS)) {
  console.error('\nThe check took longer than its budget. On a slower machine, set CHECK_BUDGET_SECONDS.')
  process.exitCode = 1
}

export {}
