import { describe, expect, test } from 'bun:test'
import { COMPILED, EXECUTABLE } from '../support/executable.ts'
import { runProgram } from '../support/program.ts'
import { lacks, program } from '../support/requirement.ts'

/** The libraries of a minimal image with glibc. The dynamic linker and the kernel's own object are no files of libraries. */
const ALLOWED = ['libc.so.6', 'libdl.so.2', 'libm.so.6', 'libpthread.so.0']

describe.skipIf(process.platform !== 'linux' || lacks(COMPILED, program('ldd')))('the executable', () => {
  test('needs no libraries but those of glibc', async () => {
    const { stdout, exitCode } = await runProgram(['ldd', EXECUTABLE || 'none'])
    const names = stdout.split('\n').flatMap((line) => /^\t(\S+)/.exec(line)?.[1] ?? [])
    const libraries = names.filter((name) => !/^linux-vdso|\/ld-linux/.test(name))

    expect(exitCode).toBe(0)
    expect(libraries).toContain('libc.so.6')
    expect(libraries.filter((name) => !ALLOWED.includes(name))).toEqual([])
  })
})
