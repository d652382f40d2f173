/**
 * `bun run mutate [--seed N] [--count N] [--only PREFIX,…] [--tests COMMIT] [-- COMMAND…]`: changes src at some places, one at a
 * time, and prints what finds each change first. It works in a copy of the project.
 *
 * --seed chooses the places (1), --count says how many (30), and --only takes only files of src whose paths begin so, like
 * `cli,store/tools`. --tests takes the folder `test` of a commit, so that one can compare the tests of before and after on the
 * same source. COMMAND runs instead of `bun run check`, so that one area takes less time.
 */
import { spawn } from 'node:child_process'
import { closeSync, cpSync, existsSync, openSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { Glob } from 'bun'
import { makeFolder } from '../support/folder.ts'
import { randomNumbers } from '../support/random.ts'
import { applyMutation, type Mutation, mutationsOf } from './mutations.ts'

const ROOT = resolve(import.meta.dir, '../..')
/** A change may make a test wait for ever: a run that takes so much longer than the one without a change has found it. */
const SLOWER_MAX = 3
const SLACK_MS = 20_000
const WHOLE_LIMIT_MS = 3_600_000

const text = (byDefault: string) => ({ type: 'string', default: byDefault }) as const
const { values, positionals } = parseArgs({
  options: { seed: text('1'), count: text('30'), only: text(''), tests: { type: 'string' } },
  allowPositionals: true,
})
const command = positionals.length > 0 ? positionals : ['bun', 'run', 'check']

type Place = readonly [file: string, mutation: Mutation]

using made = makeFolder()
const copy = join(made.path, 'copy')
const log = join(made.path, 'log')
const pathIn = (file: string) => join(copy, 'src', file)
copyProject()
const whole = await run(command)
if (whole.finder !== undefined) throw new Error(`${command.join(' ')} fails without a change: ${whole.finder}`)
console.log(`without a change: ${(whole.ms / 1000).toFixed(1)} s`)

const places = choose(Number(values.count), placesIn(values.only.split(',')))
let found = 0
for (const [file, mutation] of places) {
  const { finder, ms } = await tryOut(file, mutation)
  if (finder !== undefined) found += 1
  console.log(`${file}:${mutation.line} ${mutation.does}\n  ${finder ?? 'NOT FOUND'}, ${(ms / 1000).toFixed(1)} s`)
}
console.log(`found ${found} of ${places.length}`)

/** Copies all files that git has or would add, as they are now, to a repository of their own. */
function copyProject(): void {
  const { tests } = values
  const names = git(ROOT, 'ls-files', '-z', '--cached', '--others', '--exclude-standard').toString().split('\0')
  const wanted = names.filter((name) => name !== '' && (tests === undefined || !name.startsWith('test/')))
  for (const name of wanted) if (existsSync(join(ROOT, name))) cpSync(join(ROOT, name), join(copy, name))
  if (tests !== undefined) Bun.spawnSync(['tar', '-x'], { cwd: copy, stdin: git(ROOT, 'archive', tests, 'test') })
  git(copy, 'init', '--quiet')
  git(copy, 'add', '--all')
  git(copy, '-c', 'user.name=mutate', '-c', 'user.email=mutate@localhost', 'commit', '--quiet', '--message=mutate')
  // The check installs the packages itself.
  if (positionals.length > 0) symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
}

function git(cwd: string, ...args: readonly string[]): Buffer {
  const { stdout, stderr, exitCode } = Bun.spawnSync(['git', ...args], { cwd })
  if (exitCode !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
  return stdout
}

function placesIn(prefixes: readonly string[]): readonly Place[] {
  const files = [...new Glob('**/*.{ts,tsx}').scanSync(join(copy, 'src'))].sort()
  return files
    .filter((file) => !file.endsWith('.d.ts') && prefixes.some((prefix) => file.startsWith(prefix)))
    .flatMap((file) => mutationsOf(readFileSync(pathIn(file), 'utf8')).map((mutation): Place => [file, mutation]))
}

/** Draws so many places, none of them twice. */
function choose(count: number, places: readonly Place[]): readonly Place[] {
  const random = randomNumbers(Number(values.seed))
  const left = [...places]
  return Array.from({ length: Math.min(count, left.length) }, () => left.splice(random(left.length), 1)).flat()
}

/** Runs the command with a change, which is formatted, so that the linter refuses only what it would refuse of a person. */
async function tryOut(file: string, mutation: Mutation) {
  const path = pathIn(file)
  const source = readFileSync(path, 'utf8')
  writeFileSync(path, applyMutation(source, mutation))
  await run(['bun', 'x', 'biome', 'format', '--write', path])
  const result = await run(command, whole.ms * SLOWER_MAX + SLACK_MS)
  writeFileSync(path, source)
  return result
}

/** Runs a command in the copy until it or its time ends, and ends all that it has left. `finder` is what failed first. */
async function run([program = '', ...args]: readonly string[], limitMs = WHOLE_LIMIT_MS) {
  const startMs = performance.now()
  const output = openSync(log, 'w')
  const child = spawn(program, args, { cwd: copy, stdio: ['ignore', output, output], detached: true })
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
