/**
 * `bun run check:long [NAME]`: runs the fault tests with their long numbers of rounds, and the tests of other folders that are
 * too long for `bun run check`, one file after the other, or only the file NAME and those whose names begin with NAME-. Exits with
 * 1 if a file failed, or one for NAME ran no test, and with 2 if there is none. Without a NAME it names the files that ran no test,
 * because something is missing.
 */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'

const SUFFIX = '.test.ts'
/** Files with properties. `bun run check` tries these for fewer values, which are always the same. */
const PROPERTIES = [
  'cli/plant-lines',
  'domain/json',
  'domain/plant',
  'http/socket/plants-model',
  'store/postgres/token-watch',
  'engine/sqlite/versions',
]
const folder = import.meta.dir
const files = [
  ...[...new Bun.Glob(`**/*${SUFFIX}`).scanSync(folder)].sort(),
  '../http/socket/page.test.ts',
  ...[...new Bun.Glob(`*${SUFFIX}`).scanSync(join(folder, '../http/page'))]
    .sort()
    .map((file) => `../http/page/${file}`),
  ...[
    'http/socket/docs-browser',
    'mutate/map',
    'ship/buildah',
    'ship/package-files',
    'ship/packages',
    'ship/rehearsal',
    'ship/release',
    'ship/site',
    ...PROPERTIES,
  ].map((name) => `../${name}${SUFFIX}`),
]
const names = files.map((file) => basename(file, SUFFIX))
const [wanted] = process.argv.slice(2)
const isWanted = (name: string) => wanted === undefined || name === wanted || name.startsWith(`${wanted}-`)
if (!names.some(isWanted)) {
  console.error(`There is no ${wanted}: there are ${names.join(', ')}.`)
  process.exit(2)
}

const REPORTS = 'dist/junit'
mkdirSync(REPORTS, { recursive: true })

const failed: string[] = []
const empty: string[] = []
for (const file of files) {
  const name = basename(file, SUFFIX)
  if (!isWanted(name)) continue
  console.log(`\n${name}`)
  const report = join(REPORTS, `long-${name}.xml`)
  rmSync(report, { force: true })
  const reporter = ['--reporter=junit', `--reporter-outfile=${report}`]
  const child = Bun.spawn([process.execPath, 'test', '--timeout', '7200000', ...reporter, join(folder, file)], {
    env: { ...process.env, FAULT_LONG: '1', TEST_EXECUTABLE: process.env.TEST_EXECUTABLE ?? 'dist/plantstore' },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if ((await child.exited) !== 0) failed.push(name)
  else if (!ranTest(report)) empty.push(name)
}
if (empty.length > 0) console.log(`\nran no test: ${empty.join(', ')}`)
const isWhole = empty.length === 0
if (failed.length > 0) console.log(`\nfailed: ${failed.join(', ')}`)
else if (isWhole || wanted === undefined) console.log(`\nall ${isWhole ? '' : 'other '}rows passed`)
process.exit(failed.length === 0 && (isWhole || wanted === undefined) ? 0 : 1)

/** Whether a report of a run has a test that was not skipped. */
function ranTest(report: string): boolean {
  if (!existsSync(report)) return false
  const [, tests, skipped] =
    /<testsuites [^>]*tests="(\d+)"[^>]* skipped="(\d+)"/.exec(readFileSync(report, 'utf8')) ?? []
  return Number(tests) > Number(skipped)
}
