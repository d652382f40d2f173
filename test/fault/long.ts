/**
 * `bun run check:long [NAME]`: runs the fault tests with their long numbers of rounds, and the tests of other folders that are
 * too long for `bun run check`, one file after the other, or only the file NAME. Exits with 1 if a file failed, and with 2 if
 * no file has that name.
 */
import { basename, join } from 'node:path'

const SUFFIX = '.test.ts'
const folder = import.meta.dir
const files = [
  ...[...new Bun.Glob(`**/*${SUFFIX}`).scanSync(folder)].sort(),
  ...['http/socket/docs-browser', 'http/socket/page', 'ship/buildah', 'ship/release'].map(
    (name) => `../${name}${SUFFIX}`,
  ),
]
const names = files.map((file) => basename(file, SUFFIX))
const [wanted] = process.argv.slice(2)
if (wanted !== undefined && !names.includes(wanted)) {
  console.error(`There is no ${wanted}: there are ${names.join(', ')}.`)
  process.exit(2)
}

const failed: string[] = []
for (const file of files) {
  const name = basename(file, SUFFIX)
  if (wanted !== undefined && name !== wanted) continue
  console.log(`\n${name}`)
  const child = Bun.spawn([process.execPath, 'test', '--timeout', '7200000', join(folder, file)], {
    env: { ...process.env, FAULT_LONG: '1', TEST_EXECUTABLE: process.env.TEST_EXECUTABLE ?? 'dist/plantstore' },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if ((await child.exited) !== 0) failed.push(name)
}
console.log(failed.length === 0 ? '\nall rows passed' : `\nfailed: ${failed.join(', ')}`)
process.exit(failed.length === 0 ? 0 : 1)
