/**
 * `bun run mutate [--seed N] [--count N] [--only PREFIX,…] [--tests COMMIT] [-- COMMAND…]`: changes src at some places, one at a
 * time, and prints what finds each change first, and the share of found changes by area. It works in a copy of the project.
 *
 * --seed chooses the places (1), --count says how many (30), and --only takes only files of src whose paths begin so, like
 * `cli,store/tools`. Each change meets the types, the linter and the tests that run its function (`bun run tests-of`), the fastest
 * first. A finder counts if it fails again with the change, and passes without it. With COMMAND that runs instead. --tests takes
 * the folder `test` of a commit, so that one can compare the tests of before and after on the same source.
 */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { sourceFiles } from '../calls/instrument.ts'
import { makeFolder } from '../support/folder.ts'
import { copyProject, git, makeRepository, PROJECT } from '../support/project-copy.ts'
import { randomNumbers } from '../support/random.ts'
import { applyMutation, type Mutation, mutationsOf } from './mutations.ts'
import { checkedTests, hashOfSource, readTestMap, refuse, type TestMap, testsOf } from './test-map.ts'

/** A change may make a test wait for ever: a run that takes so much longer than the one without a change has found it. */
const SLOWER_MAX = 3
const SLACK_MS = 20_000
const WHOLE_LIMIT_MS = 3_600_000

const text = (byDefault: string) => ({ type: 'string', default: byDefault }) as const
const { values, positionals } = parseArgs({
  options: { seed: text('1'), count: text('30'), only: text(''), tests: { type: 'string' } },
  allowPositionals: true,
})

type Place = readonly [file: string, mutation: Mutation]
/** A command that may find a change, with its limit. */
interface Finder {
  readonly command: readonly string[]
  readonly limitMs: number
  /** Runs against an executable that was built with the change. */
  readonly isOfExecutable?: boolean
}

const map = positionals.length > 0 ? undefined : readTestMap()
if (map !== undefined && map.source !== hashOfSource()) refuse('src has changed since: run bun run check:long map.')
using made = makeFolder()
const copy = join(made.path, 'copy')
const log = join(made.path, 'log')
const pathIn = (file: string) => join(copy, 'src', file)
const { tests: testsCommit } = values
copyProject(copy, (file) => testsCommit === undefined || !file.startsWith('test/'))
if (testsCommit !== undefined)
  Bun.spawnSync(['tar', '-x'], { cwd: copy, stdin: git(PROJECT, 'archive', testsCommit, 'test') })
makeRepository(copy)

const findersOf = map === undefined ? await commandOnly() : testsBy(map)
const areas = new Map<string, { found: number; all: number }>()
for (const [file, mutation] of choose(Number(values.count), placesIn(values.only.split(',')))) {
  const startMs = performance.now()
  const finder = await tryOut(file, mutation)
  const [, area = ''] = /^((?:cli\/serve|\w+))/.exec(file) ?? []
  const { found, all } = areas.get(area) ?? { found: 0, all: 0 }
  areas.set(area, { found: found + (finder === undefined ? 0 : 1), all: all + 1 })
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
  console.log(`${file}:${mutation.line} ${mutation.does}\n  ${finder ?? 'NOT FOUND'}, ${seconds} s`)
}
const sum = (key: 'found' | 'all') => [...areas.values()].reduce((total, area) => total + area[key], 0)
for (const [area, { found, all }] of areas) console.log(`${area}: ${found} of ${all}`)
console.log(`found ${sum('found')} of ${sum('all')}`)

/** Runs the given command once without a change. */
async function commandOnly() {
  const whole = await run({ command: positionals, limitMs: WHOLE_LIMIT_MS })
  if (whole.finder !== undefined) throw new Error(`${positionals.join(' ')} fails without a change: ${whole.finder}`)
  console.log(`without a change: ${(whole.ms / 1000).toFixed(1)} s`)
  const finder: Finder = { command: positionals, limitMs: whole.ms * SLOWER_MAX + SLACK_MS }
  return () => [finder]
}

/** The tests that run a place. */
function testsBy(map: TestMap) {
  const executable = new Set(checkedTests().flatMap(({ file, isOfExecutable }) => (isOfExecutable ? [file] : [])))
  return (file: string, at: number): readonly Finder[] => {
    const tests = testsOf(map, file, at).map((test) => ({
      command: ['bun', 'test', '--bail', '--timeout', '120000', test],
      limitMs: (map.seconds[test] ?? 0) * 1000 * SLOWER_MAX + SLACK_MS,
      isOfExecutable: executable.has(test),
    }))
    return [
      { command: ['bun', 'run', 'types'], limitMs: WHOLE_LIMIT_MS },
      { command: ['bun', 'x', 'biome', 'ci', join('src', file)], limitMs: WHOLE_LIMIT_MS },
      ...tests.filter(({ isOfExecutable }) => !isOfExecutable),
      ...tests.filter(({ isOfExecutable }) => isOfExecutable),
    ]
  }
}

function placesIn(prefixes: readonly string[]): readonly Place[] {
  return sourceFiles(copy)
    .filter((file) => prefixes.some((prefix) => file.startsWith(prefix)))
    .flatMap((file) => mutationsOf(readFileSync(pathIn(file), 'utf8')).map((mutation): Place => [file, mutation]))
}

/** Draws so many places, none of them twice. */
function choose(count: number, places: readonly Place[]): readonly Place[] {
  const random = randomNumbers(Number(values.seed))
  const left = [...places]
  return Array.from({ length: Math.min(count, left.length) }, () => left.splice(random(left.length), 1)).flat()
}

/** Makes a change, and runs its finders until one has found it. Returns what failed. */
async function tryOut(file: string, mutation: Mutation): Promise<string | undefined> {
  const path = pathIn(file)
  const source = readFileSync(path, 'utf8')
  const change = async () => {
    writeFileSync(path, applyMutation(source, mutation))
    // So that the linter refuses only what it would refuse of a person.
    await run({ command: ['bun', 'x', 'biome', 'format', '--write', path], limitMs: WHOLE_LIMIT_MS })
  }
  let built: 'with' | 'without' | undefined
  /** Runs a finder with or without the change. */
  const find = async (finder: Finder, way: 'with' | 'without') => {
    if (finder.isOfExecutable && built !== way) {
      built = way
      const { finder: failure } = await run({ command: ['bun', 'run', 'build'], limitMs: WHOLE_LIMIT_MS })
      if (failure !== undefined) return failure
    }
    return (await run(finder)).finder
  }
  try {
    await change()
    for (const finder of findersOf(file, mutation.start)) {
      const failure = await find(finder, 'with')
      if (failure === undefined) continue
      if (positionals.length > 0) return failure
      const one = failedTest(finder, failure)
      const again = await find(one, 'with')
      writeFileSync(path, source)
      const without = await find(one, 'without')
      if (again !== undefined && without === undefined) return `${finder.command.at(-1)}: ${failure}`
      console.log(`  ${finder.command.at(-1)} fails now and then: ${failure}`)
      await change()
    }
    return undefined
  } finally {
    writeFileSync(path, source)
  }
}

/** The test of a finder that has failed, or all of it if that was no test. */
function failedTest(finder: Finder, failure: string): Finder {
  const title = failure.split(' > ').at(-1)
  const isTest = finder.command.at(-1)?.endsWith('.test.ts') && title !== undefined && title !== failure
  return isTest ? { ...finder, command: [...finder.command, '--test-name-pattern', RegExp.escape(title)] } : finder
}

/** Runs a command in the copy until it or its time ends, and ends all that it has left. `finder` is what failed first. */
async function run({ command: [program = '', ...args], limitMs, isOfExecutable = false }: Finder) {
  const startMs = performance.now()
  const output = openSync(log, 'w')
  const env = isOfExecutable ? { ...process.env, TEST_EXECUTABLE: 'dist/plantstore' } : process.env
  const child = spawn(program, args, { cwd: copy, env, stdio: ['ignore', output, output], detached: true })
  const end = () => Bun.spawnSync(['kill', '-KILL', '--', `-${child.pid}`])
  const timer = setTimeout(end, limitMs)
  const exitCode = await new Promise<number | null>((resolve, reject) => child.on('exit', resolve).on('error', reject))
  clearTimeout(timer)
  end()
  closeSync(output)
  const finder = exitCode === null ? 'took too long' : failureIn(readFileSync(log, 'utf8'), exitCode)
  return { ms: performance.now() - startMs, finder: exitCode === 0 ? undefined : finder }
}

/** The first failed test or error, and the step of the check if there is one. */
function failureIn(text: string, exitCode: number): string {
  const [, step] = /^(\S+) failed with exit code/m.exec(text) ?? []
  const [, failure] = /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m.exec(text) ?? /^(.*\berror\b.*)$/im.exec(text) ?? []
  return [step, failure ?? `exit code ${exitCode}`].filter((part) => part !== undefined).join(': ')
}
