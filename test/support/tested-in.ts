import { existsSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { Glob } from 'bun'

const PROJECT = resolve(import.meta.dir, '../..')
const TESTS = [
  ...new Glob('test/**/*.{test.ts,txt}').scanSync(PROJECT),
  ...new Glob('test/store/contract/*.ts').scanSync(PROJECT),
]
  .filter((path) => !path.includes('node_modules'))
  .sort()

/**
 * The test, the transcript or the part of the contract of stores for a file of src. It has the name of the file, or the first line of
 * the file says `// Tested in test/….` Returns `undefined` if there is none.
 */
export function testOf(file: string, text: string): string | undefined {
  const [, named] = /^\/\/ Tested in (test\/\S+)\.\n/.exec(text) ?? []
  if (named !== undefined) return existsSync(join(PROJECT, named)) ? named : undefined
  const name = basename(file).replace(/\.tsx?$/, '')
  const part = file.includes('/') ? `(?:${file.split('/')[0]}|fault|ship)/(?:.*/)?` : ''
  const isTest = new RegExp(`^test/${part}${name}\\.(?:test\\.ts|txt)$|^test/store/contract/${name}\\.ts$`)
  return TESTS.find((path) => isTest.test(path) && (file.startsWith('store/') || !path.includes('/contract/')))
}

/** The file that bun runs for what `testOf` returns for a file of src. */
export function runnerOf(path: string, file: string): string {
  if (path.startsWith('test/cli/transcripts/')) return 'test/cli/commands.test.ts'
  if (path.startsWith('test/http/transcripts/')) return 'test/http/transcripts.test.ts'
  if (!path.startsWith('test/store/contract')) return path
  return `test/store/${file.startsWith('store/postgres') ? 'postgres' : 'sqlite'}/contract.test.ts`
}
