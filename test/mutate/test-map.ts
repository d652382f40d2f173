import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { functionsOf, LEFT_OUT, sourceFiles } from '../calls/instrument.ts'
import { PROJECT } from '../support/project-copy.ts'

/** Which tests run each function of src. `bun run check:long map` collects it. */
export interface TestMap {
  /** The source that the lines are of. */
  readonly source: string
  /** How long each file of tests took. */
  readonly seconds: Readonly<Record<string, number>>
  /** The files of tests that run a function, by its file and line. */
  readonly tests: Readonly<Record<string, readonly string[]>>
}

/** Where the map is kept. */
export const MAP_PATH = join(PROJECT, 'dist/tests-of.json')

/** A file of tests that `bun run check` runs. */
export interface TestFile {
  readonly file: string
  /** Whether its commands run from the compiled executable. */
  readonly isOfExecutable: boolean
}

/** It shows reviewers each change of the OpenAPI document, and proves nothing. */
const DIFF = 'test/http/openapi-diff.test.ts'

/** All files of tests that `bun run check` runs, from the scripts of package.json, but for one that proves nothing. */
export function checkedTests(): readonly TestFile[] {
  const { scripts } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'))
  return ['test', 'test:executable', 'test:fault', 'test:page', 'test:ship'].flatMap((script) => {
    const places = String(scripts[script])
      .split(' ')
      .filter((part) => /^(?:\.\/)?test\//.test(part) && !part.endsWith('with-postgres.ts'))
    const files = places.flatMap((place) => [
      ...new Bun.Glob(place.endsWith('.ts') ? place.replace('./', '') : `${place}/**/*.test.ts`).scanSync(PROJECT),
    ])
    const proofs = files.filter((file) => file !== DIFF)
    return proofs.sort().map((file) => ({ file, isOfExecutable: script !== 'test' }))
  })
}

/** Names the source as it is now. */
export const hashOfSource = (): string => {
  const hash = new Bun.CryptoHasher('sha256')
  for (const file of sourceFiles(PROJECT)) hash.update(file).update(readFileSync(join(PROJECT, 'src', file)))
  return hash.digest('hex')
}

/** Reads the map. Ends the process if it was never collected. */
export function readTestMap(): TestMap {
  if (!existsSync(MAP_PATH)) refuse('There is no map of the tests yet: run bun run check:long map.')
  return JSON.parse(readFileSync(MAP_PATH, 'utf8'))
}

/** Ends this process with a sentence for the one who started it. */
export function refuse(sentence: string): never {
  console.error(sentence)
  process.exit(1)
}

/**
 * The tests of a place in a file of src, the fastest first. They run the innermost function there; outside of functions, and
 * without a place, they run any function of the file or, if it has none, of the files that import it.
 */
export function testsOf({ tests, seconds }: TestMap, file: string, at?: number): readonly string[] {
  if (file.startsWith(LEFT_OUT))
    return checkedTests()
      .map((test) => test.file)
      .filter((test) => /\/page[\w.-]*(?:\/|$)/.test(test))
  const functions = functionsOf(readFileSync(join(PROJECT, 'src', file), 'utf8'))
  const inner = functions.findLast(({ body }) => at !== undefined && body.start <= at && at < body.end)
  const places = (inner === undefined ? functions : [inner]).map(({ loc }) => `${file}:${loc.start.line}`)
  const found = new Set(places.flatMap((place) => tests[place] ?? []))
  if (functions.length === 0)
    for (const user of importersOf(file))
      for (const test of testsOf({ tests, seconds, source: '' }, user)) found.add(test)
  return [...found].sort((a, b) => (seconds[a] ?? 0) - (seconds[b] ?? 0))
}

const importersOf = (file: string): readonly string[] => {
  const name = file.replace(/^.*\//, '')
  return sourceFiles(PROJECT).filter(
    (other) => other !== file && readFileSync(join(PROJECT, 'src', other), 'utf8').includes(`/${name}'`),
  )
}
