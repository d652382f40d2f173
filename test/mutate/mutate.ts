/**
 * `bun run mutate [--seed N] [--count N] [--only PREFIX,…] [--tests COMMIT] [-- COMMAND…]`: changes src at some places, one at a
 * time, and prints what finds each change first. It works in a copy of the project.
 *
 *   --seed   chooses the places: always the same ones of the same source. 1 by default.
 *   --count  is the number of places. 30 by default.
 *   --only   takes only files of src whose paths begin so, like `cli,store/sqlite/tools`.
 *   --tests  takes the folder `test` of a commit, so that one can compare the tests of before and after on the same source.
 *   COMMAND  runs instead of `bun run check`, so that one area takes less time.
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

interface Place {
  readonly file: string
  readonly mutation: Mutation
}

const { values, positionals } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '30' },
    only: { type: 'string', default: '' },
    tests: { type: 'string' },
  },
  allowPositionals: true,
})
const command = positionals.length > 0 ? positionals : ['bun', 'run', 'check']

using made = makeFolder()
const copy = join(made.path, 'copy')
const log = join(made.path, 'log')
copyProject()
// The check installs packages into the copy.
if (positionals.length > 0) symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
const whole = await run(command)
if (whole.finder !== undefined) throw new Error(`${command.join(' ')} fails without a change: ${whole.finder}`)
console.log(`without a change: ${seconds(whole.ms)}`)

const places = choose(Number(values.count), placesIn(values.only.split(',')))
let found = 0
for (const { file, mutation } of places) {
  const { finder, ms } = await tryOut(file, mutation)
  if (finder !== undefined) found += 1
  console.log(`${file}:${mutation.line} ${mutation.does}\n  ${finder ?? 'NOT FOUND'}, ${seconds(ms)}`)
}
console.log(`found ${found} of ${places.length}`)

/** Copies all files that git has or would add, as they are now, to a repository of their own. */
function copyProject(): void {
  const names = git(ROOT, 'ls-files', '-z', '--cached', '--others', '--exclude-standard').toString().split('\0')
  for (const name of new Set(names)) {
    const isOfOthers = values.tests !== undefined && name.startsWith('test/')
    if (name !== '' && !isOfOthers && existsSync(join(ROOT, name))) cpSync(join(ROOT, name), join(copy, name))
  }
  if (values.tests !== undefined) {
    Bun.spawnSync(['tar', '--extract'], { cwd: copy, stdin: git(ROOT, 'archive', values.tests, 'test') })
  }
  git(copy, 'init', '--quiet')
  git(copy, 'add', '--all')
  git(copy, '-c', 'user.name=mutate', '-c', 'user.email=mutate@localhost', 'commit', '--quiet', '--message=mutate')
}

function git(cwd: string, ...args: readonly string[]): Buffer {
  const { stdout, stderr, exitCode } = Bun.spawnSync(['git', ...args], { cwd })
  if (exitCode !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
  return stdout
}

function placesIn(prefixes: readonly string[]): readonly Place[] {
  const files = [...new Glob('**/*.{ts,tsx}').scanSync(join(copy, 'src'))].sort()
  const wanted = files.filter((file) => !file.endsWith('.d.ts') && prefixes.some((prefix) => file.startsWith(prefix)))
  return wanted.flatMap((file) => mutationsOf(sourceOf(file)).map((mutation) => ({ file, mutation })))
}

function pathOf(file: string): string {
  return join(copy, 'src', file)
}

function sourceOf(file: string): string {
  return readFileSync(pathOf(file), 'utf8')
}

/** Draws places without drawing one twice. */
function choose(count: number, places: readonly Place[]): readonly Place[] {
  const random = randomNumbers(Number(values.seed))
  const left = [...places]
  return Array.from({ length: Math.min(count, left.length) }, () => left.splice(random(left.length), 1)).flat()
}

/** Runs the command with a change, which is formatted, so that the linter refuses only what it would refuse of a person. */
async function tryOut(file: string, mutation: Mutation) {
  const source = sourceOf(file)
  writeFileSync(pathOf(file), applyMutation(source, mutation))
  await run(['bun', 'x', 'biome', 'format', '--write', pathOf(file)])
  try {
    return await run(command, whole.ms * SLOWER_MAX + SLACK_MS)
  } finally {
    writeFileSync(pathOf(file), source)
  }
}

/** Runs a command in the copy to its end, or ends it and all that it started. `finder` is what failed first. */
async function run([program = '', ...args]: readonly string[], limitMs = Number.POSITIVE_INFINITY) {
  const startMs = performance.now()
  const output = openSync(log, 'w')
  const child = spawn(program, args, { cwd: copy, stdio: ['ignore', output, output], detached: true })
  const end = () => void (child.pid && process.kill(-child.pid, 'SIGKILL'))
  const timer = limitMs < Number.POSITIVE_INFINITY ? setTimeout(end, limitMs) : undefined
  const exitCode = await new Promise<number | null>((resolve, reject) => child.on('exit', resolve).on('error', reject))
  clearTimeout(timer)
  closeSync(output)
  const ms = performance.now() - startMs
  if (exitCode === 0) return { ms, finder: undefined }
  return { ms, finder: exitCode === null ? 'took too long' : failureIn(readFileSync(log, 'utf8'), exitCode) }
}

/** The first failed test, or the first error, and the step of the check if there is one. */
function failureIn(text: string, exitCode: number): string {
  const [, step] = /^(\S+) failed with exit code/m.exec(text) ?? []
  const [, failure = `exit code ${exitCode}`] =
    /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m.exec(text) ?? /^(.*\berror\b.*)$/im.exec(text) ?? []
  return step === undefined ? failure : `${step}: ${failure}`
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}
