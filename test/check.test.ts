import { expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import manifest from '../package.json'
import { makeFolder } from './support/folder.ts'
import { runProgram } from './support/program.ts'

const CHECK = resolve(import.meta.dir, 'check.ts')
const BUILT = ['test:executable', 'test:fault', 'test:page', 'test:ship'] as const
const ALL = ['build', 'calls', 'lint', 'test', 'test:executable', 'test:fault', 'types']

/** Runs the check in a project whose steps print their names, and fail if they are named here. Its machine has a shell alone. */
async function runCheck(failing: readonly string[], ...args: readonly string[]) {
  using folder = makeFolder()
  mkdirSync(join(folder.path, 'bin'))
  symlinkSync('/bin/sh', join(folder.path, 'bin/sh'))
  const steps = ['lint', 'types', 'calls', 'test', 'build', ...BUILT]
  const scripts = steps.map((step) => [step, `echo ran ${step}; exit ${failing.includes(step) ? 3 : 0}`] as const)
  writeFileSync(
    join(folder.path, 'package.json'),
    JSON.stringify({ name: 'steps', scripts: Object.fromEntries(scripts) }),
  )
  const { stdout, exitCode } = await runProgram([process.execPath, CHECK, ...args], {
    cwd: folder.path,
    env: { PATH: join(folder.path, 'bin'), HOME: folder.path },
  })
  const ran = [...stdout.matchAll(/^ran (\S+)$/gm)].map(([, step]) => step).sort()
  return { ran, exitCode, lacks: /^This machine lacks (.*)\.$/m.exec(stdout)?.[1] }
}

test.each([
  { failing: [], args: [], exitCode: 0, ran: ALL },
  { failing: ['test'], args: [], exitCode: 3, ran: ['build', 'calls', 'lint', 'test', 'types'] },
  { failing: ['test', 'test:fault'], args: ['--keep-going'], exitCode: 3, ran: ALL },
  { failing: ['build'], args: ['--keep-going'], exitCode: 3, ran: ['build', 'calls', 'lint', 'test', 'types'] },
  { failing: [], args: ['test:ship', 'build'], exitCode: 0, ran: ['build', 'test:ship'] },
  { failing: [], args: ['test:all'], exitCode: 2, ran: [] },
])('check $args runs $ran if $failing fail', async ({ failing, args, exitCode, ran }) => {
  expect(await runCheck(failing, ...args)).toMatchObject({ exitCode, ran })
})

test('the check says at the start what the machine lacks', async () => {
  const { lacks } = await runCheck([], 'lint')

  expect(lacks).toMatch(/\bcurl, gcc, .*\bactionlint, .*Tests that need them are skipped$/)
})

test.each(BUILT)('%s says in a line that the executable is not built', async (step) => {
  using folder = makeFolder()
  writeFileSync(join(folder.path, 'package.json'), JSON.stringify(manifest))
  const { stderr, exitCode } = await runProgram([process.execPath, 'run', '--silent', step], { cwd: folder.path })

  expect({ stderr, exitCode }).toEqual({ stderr: 'There is no dist/plantstore: run bun run build.\n', exitCode: 1 })
})
