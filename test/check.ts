/**
 * `bun run check [--keep-going] [STEP…]`: runs every step in order but those of what ships, or the steps that are named (`install`
 * comes with each), and stops at the first one that fails, with its exit code. `bun run check:ship` names those of what ships. With
 * --keep-going it runs the others, too, unless they need the executable that could not be built. At the start it says what this
 * machine lacks, and at the end what each step took, and the time of all beside the budget. With CI=true it fails above the budget,
 * which CHECK_BUDGET_SECONDS raises.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

/** What all steps of a run may take together on two cores. What does not fit belongs to `bun run check:long`. */
const BUDGET_SECONDS = Number(process.env.CHECK_BUDGET_SECONDS ?? 300)
const IS_CI = process.env.CI === 'true'

/** The tests of the page in browsers, and of packages, site, release and licences. They run only if they are named. */
const SHIP = ['test:page', 'test:ship']
/** Scripts of package.json, cheapest first. Two steps of tests beside each other take as long as one after the other. */
const STEPS = [
  ['lint', 'types', 'calls'],
  ...['build', 'test', 'test:executable', 'test:fault', ...SHIP].map((step) => [step]),
]

const { values, positionals: named } = parseArgs({
  options: { 'keep-going': { type: 'boolean', default: false } },
  allowPositionals: true,
})
const known = ['install', ...STEPS.flat()]
const unknown = named.filter((name) => !known.includes(name))
if (unknown.length > 0) {
  console.error(`There is no step ${unknown.join(', ')}: there are ${known.join(', ')}.`)
  process.exit(2)
}
const isWanted = (step: string): boolean => (named.length === 0 ? !SHIP.includes(step) : named.includes(step))

const seconds = new Map<string, number>()
const failed: (readonly [step: string, exitCode: number])[] = []

const secondsSince = (startMs: number): number => (performance.now() - startMs) / 1000

async function run(step: string, args: readonly string[]): Promise<void> {
  const startMs = performance.now()
  const exitCode = await Bun.spawn([process.execPath, ...args], { stdio: ['ignore', 'inherit', 'inherit'] }).exited
  seconds.set(step, secondsSince(startMs))
  if (exitCode === 0) return
  failed.push([step, exitCode])
  console.error(`\n${step} failed with exit code ${exitCode}`)
}

/** What tests need, and this machine lacks. .ci/run installs these programs. */
function lacking(): readonly string[] {
  const script = readFileSync(join(import.meta.dir, '../.ci/run'), 'utf8')
  const programs = [...script.matchAll(/^for program in (.+?);|^command -v (\S+)/gm)].flatMap(([, several, one]) =>
    (several ?? one ?? '').split(' '),
  )
  return [
    ...(process.getuid?.() === 0 ? [] : ['the rights of root']),
    ...programs.filter((name) => Bun.which(name) === null),
  ]
}

const startMs = performance.now()
const lacks = lacking()
if (lacks.length > 0)
  console.log(`This machine lacks ${lacks.join(', ')}. Tests that need them ${IS_CI ? 'fail' : 'are skipped'}.\n`)
await run('install', ['install', '--frozen-lockfile'])
for (const steps of STEPS) {
  const broken = failed.map(([step]) => step)
  if (broken.includes('install') || (broken.length > 0 && !values['keep-going'])) break
  const able = broken.includes('build') ? steps.filter((step) => !step.startsWith('test:')) : steps
  await Promise.all(able.filter(isWanted).map((step) => run(step, ['run', step])))
}

const total = secondsSince(startMs)
console.log()
for (const [step, each] of seconds) console.log(`${each.toFixed(0).padStart(5)} s  ${step}`)
console.log(`${total.toFixed(0).padStart(5)} s  in all; the budget on two cores is ${BUDGET_SECONDS} s`)
if (failed.length > 0) console.error(`\nfailed: ${failed.map(([step]) => step).join(', ')}`)
process.exitCode = failed[0]?.[1] ?? 0
if (process.exitCode === 0 && IS_CI && !(total <= BUDGET_SECONDS)) {
  console.error('\nThe check took longer than its budget. On a slower machine, set CHECK_BUDGET_SECONDS.')
  process.exitCode = 1
}
