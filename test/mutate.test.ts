import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { makeFolder } from './support/folder.ts'
import { runProgram } from './support/program.ts'
import { copyProject } from './support/project-copy.ts'

test.each([
  ['tests-of', 'src/main.ts', 'There is no map of the tests yet: run bun run check:long map.'],
  ['tests-of', 'src/main', 'src/main is no file of src.'],
  ['mutate', '--count=1', 'There is no map of the tests yet: run bun run check:long map.'],
])('%s %s says in a line without a map: %s', async (name, arg, sentence) => {
  using folder = makeFolder()
  copyProject(folder.path, (file) => /^(?:src|test\/(?:calls|mutate|support))\//.test(file))
  const program = [process.execPath, join(folder.path, `test/mutate/${name}.ts`), arg]

  expect(await runProgram(program, { cwd: folder.path })).toEqual({ stdout: '', stderr: `${sentence}\n`, exitCode: 1 })
})
