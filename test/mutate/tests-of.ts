/** `bun run tests-of FILE…`: prints the tests that run a function of each file of src, and how long each of them takes. */
import { existsSync } from 'node:fs'
import { hashOfSource, readTestMap, testsOf } from './test-map.ts'

const map = readTestMap()
if (map.source !== hashOfSource())
  console.error('The map is of an older source. bun run check:long map collects it anew.')
for (const path of process.argv.slice(2)) {
  if (!path.startsWith('src/') || !existsSync(path)) throw new Error(`${path} is no file of src`)
  for (const test of testsOf(map, path.slice('src/'.length)))
    console.log(`${(map.seconds[test] ?? 0).toFixed(1).padStart(6)} s  ${test}`)
}
