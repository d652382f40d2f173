import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { applyMutation, mutationsOf } from './mutate/mutations.ts'
import { makeFolder } from './support/folder.ts'
import { runProgram } from './support/program.ts'
import { copyProject } from './support/project-copy.ts'

const SOURCE = `const LIMIT: 5 = 5
async function close(count: number) {
  if (count >= LIMIT || (await find()) === 0n) throw new Error('full')
  await store.close()
}
`

test('a change turns a comparison, negates a condition, leaves out a statement or an await, or moves a constant by one', () => {
  const changes = mutationsOf(SOURCE).map((mutation) => {
    const changed = applyMutation(SOURCE, mutation).split('\n')
    return [mutation.line, mutation.does, changed[mutation.line - 1]?.trim()]
  })

  expect(changes).toEqual([
    [1, 'off by one: 5', 'const LIMIT: 5 = 6'],
    [3, 'turned to <: count >= LIMIT', "if (count < LIMIT || (await find()) === 0n) throw new Error('full')"],
    [
      3,
      'negated: count >= LIMIT || (await find()) === 0n',
      "if (!(count >= LIMIT || (await find()) === 0n)) throw new Error('full')",
    ],
    [3, 'turned to !==: (await find()) === 0n', "if (count >= LIMIT || (await find()) !== 0n) throw new Error('full')"],
    [3, 'not awaited: await find()', "if (count >= LIMIT || (find()) === 0n) throw new Error('full')"],
    [3, 'off by one: 0n', "if (count >= LIMIT || (await find()) === 1n) throw new Error('full')"],
    [3, "left out: throw new Error('full')", 'if (count >= LIMIT || (await find()) === 0n) ;'],
    [4, 'left out: await store.close()', ';'],
    [4, 'not awaited: await store.close()', 'store.close()'],
  ])
})

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
