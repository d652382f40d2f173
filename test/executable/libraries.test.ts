import { describe, expect, test } from 'bun:test'
import { EXECUTABLE } from '../support/executable.ts'
import { runProgram } from '../support/program.ts'

const canTell = process.platform === 'linux' && (Bun.which('ldd') !== null || process.env.CI === 'true')
const reason = EXECUTABLE ? 'there is no ldd' : 'TEST_EXECUTABLE names none'
const isSkipped = !EXECUTABLE || !canTell

/** What a minimal image with glibc has. The dynamic linker and the kernel's own object are no libraries of the disk. */
const ALLOWED = ['libc.so.6', 'libdl.so.2', 'libm.so.6', 'libpthread.so.0']

describe.skipIf(isSkipped)(`the libraries of the executable${isSkipped ? ` (skipped: ${reason})` : ''}`, () => {
  test('are those of glibc alone', async () => {
    const { stdout, exitCode } = await runProgram(['ldd', EXECUTABLE || 'none'])
    const names = stdout.split('\n').flatMap((line) => /^\t(\S+)/.exec(line)?.[1] ?? [])
    const libraries = names.filter((name) => !/^linux-vdso|\/ld-linux/.test(name))

    expect(exitCode).toBe(0)
    expect(libraries).toContain('libc.so.6')
    expect(libraries.filter((name) => !ALLOWED.includes(name))).toEqual([])
  })
})
