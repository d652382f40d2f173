/**
 * `bun run check:long [NAME]`: the tests of faults with their long numbers of rounds, each row alone and one after the
 * other; or the row NAME alone, which is the name of its file. Exits with 1 if one failed, with 2 if there is no such row.
 */
import { basename, join } from 'node:path'

const SUFFIX = '.test.ts'
const folder = import.meta.dir
const names = [...new Bun.Glob(`*${SUFFIX}`).scanSync(folder)].map((file) => basename(file, SUFFIX)).sort()
const [wanted] = process.argv.slice(2)
if (wanted !== undefined && !names.includes(wanted)) {
  console.error(`There is no ${wanted}: there are ${names.join(', ')}.`)
  process.exit(2)
}

const failed: string[] = []
for (const name of wanted === undefined ? names : [wanted]) {
  console.log(`\n${name}`)
  const child = Bun.spawn([process.execPath, 'test', '--timeout', '7200000', join(folder, `${name}${SUFFIX}`)], {
    env: { ...process.env, FAULT_LONG: '1', TEST_EXECUTABLE: process.env.TEST_EXECUTABLE ?? 'dist/plantstore' },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if ((await child.exited) !== 0) failed.push(name)
}
console.log(failed.length === 0 ? '\nall rows passed' : `\nfailed: ${failed.join(', ')}`)
process.exit(failed.length === 0 ? 0 : 1)
