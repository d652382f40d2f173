/** `bun run tests-of FILE…`: prints the tests that run a function of each file of src, and how long each of them takes. */
import { existsSync } from 'node:fs'
import { hashOfSource, readTestMap, refuse, testsOf } from './test-map.ts'

const paths = process.argv.slice(2)
for (const path of paths) if (!path.startsWith('src/') || !existsSync(path)) refuse(`${path} is no file of src.`)
const map = readTestMap()
if (map.source !== hashOfSource())
  console.error('The map is of an older source. bun run check:long map collects it anew.')
for (const path of paths)
  for (const test of testsOf(map, path.slice('src/'.length)))
    console.log(`${(map.seconds[test] ?? 0).toFixed(1).padStart(6)} s  ${test}`)
