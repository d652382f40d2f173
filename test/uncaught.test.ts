import { expect, test } from 'bun:test'
import { join, resolve } from 'node:path'
import { serve } from './support/executable.ts'
import { makeFolder } from './support/folder.ts'

const MAIN = resolve(import.meta.dir, '../src/main.ts')

// Only a program that runs from source can be given a bug.
test.each([
  ['is thrown', 'throw new Error("a\\u001b[2Kbug")'],
  ['rejects a promise', 'void Promise.reject(new Error("a\\u001b[2Kbug"))'],
])('an error that %s and that nobody catches ends a server with 1', async (_, statement) => {
  using folder = makeFolder()
  const preload = join(folder.path, 'bug.ts')
  await Bun.write(preload, `process.on('SIGUSR2', () => { ${statement} })`)
  const command = [process.execPath, '--preload', preload, MAIN]
  await using server = await serve(join(folder.path, 'plantstore.db'), [], { command })

  process.kill(server.pid, 'SIGUSR2')

  expect(await server.ended()).toBe(1)
  expect(server.stderr()).toMatch(/^plantstore: [\s\S]*bug[\s\S]*bug\.ts/)
  expect(server.stderr()).not.toContain('\u001b')
})
