import { expect } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { functionsOf, instrumentSource, LEFT_OUT, sourceFiles } from '../calls/instrument.ts'
import { testLong } from '../fault/rounds.ts'
import { makeFolder } from '../support/folder.ts'
import { runProgram } from '../support/program.ts'
import { copyProject, makeRepository, PROJECT } from '../support/project-copy.ts'
import { runnerOf, testOf } from '../support/tested-in.ts'
import { checkedTests, hashOfSource, MAP_PATH, type TestFile, type TestMap } from './test-map.ts'

/** A copy of the project whose functions write down when they are called first. */
async function makeCopy(folder: string) {
  const [project, log] = [join(folder, 'project'), join(folder, 'called')]
  copyProject(project)
  makeRepository(project)
  instrumentSource(project, log, 'first calls')
  const { exitCode, stderr } = await runProgram(['bun', 'run', 'build'], { cwd: project })
  expect([exitCode, stderr]).toEqual([0, expect.any(String)])
  return async ({ file, isOfExecutable }: TestFile) => {
    rmSync(log, { force: true })
    const startMs = performance.now()
    const env = {
      ...process.env,
      TEST_EXECUTABLE: isOfExecutable ? 'dist/plantstore' : undefined,
      FAULT_LONG: undefined,
    }
    const command = ['bun', 'test', '--timeout', '120000', file]
    await runProgram(command, { cwd: project, env })
    const called = existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : []
    return { file, seconds: (performance.now() - startMs) / 1000, called: new Set(called) }
  }
}

testLong('each file of src is run by a test, and the map of the tests tells by which', async () => {
  using folder = makeFolder()
  const left = [...checkedTests()]
  const runs: { file: string; seconds: number; called: ReadonlySet<string> }[] = []
  const copies = Array.from({ length: availableParallelism() }, async (_, index) => {
    const run = await makeCopy(join(folder.path, String(index)))
    for (let test = left.shift(); test !== undefined; test = left.shift()) runs.push(await run(test))
  })
  await Promise.all(copies)

  const tests: Record<string, string[]> = {}
  for (const { file, called } of runs) for (const place of called) tests[place] = [...(tests[place] ?? []), file]
  const seconds = Object.fromEntries(runs.map((run) => [run.file, run.seconds]))
  mkdirSync(dirname(MAP_PATH), { recursive: true })
  writeFileSync(MAP_PATH, JSON.stringify({ source: hashOfSource(), seconds, tests } satisfies TestMap))

  const functions = sourceFiles(PROJECT)
    .filter((file) => !file.startsWith(LEFT_OUT))
    .flatMap((file) =>
      functionsOf(readFileSync(join(PROJECT, 'src', file), 'utf8')).map(({ loc }) => [file, loc.start.line]),
    )
  const unseen = functions.filter(([file, line]) => tests[`${file}:${line}`] === undefined)
  console.log(
    `no test was seen to run ${unseen.length} of ${functions.length} functions:\n${unseen.map((each) => each.join(':')).join('\n')}`,
  )
  const isRunByItsTest = ([file, line]: readonly (string | number)[]) => {
    const test = testOf(`${file}`, readFileSync(join(PROJECT, 'src', `${file}`), 'utf8'))
    return test !== undefined && tests[`${file}:${line}`]?.includes(runnerOf(test, `${file}`))
  }
  const run = new Set(functions.filter(isRunByItsTest).map(([file]) => file))
  expect([...new Set(functions.map(([file]) => file))].filter((file) => !run.has(file))).toEqual([])
  const seen = new Set(Object.keys(tests).map((place) => place.split(':')[0]))
  expect([...new Set(functions.map(([file]) => file))].filter((file) => !seen.has(`${file}`))).toEqual([])
})
