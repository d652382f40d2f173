import { describe, expect, test } from 'bun:test'
import { chmodSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json'
import { makeFolder } from '../support/folder.ts'
import { runProgram } from '../support/program.ts'
import { lacks, program } from '../support/requirement.ts'
import { PROJECT, runIn } from './run.ts'
import { jobsOf, pathOfWorkflow, WORKFLOWS } from './workflow.ts'

const release = await jobsOf('release')
const commands = Object.values(release)
  .flatMap(({ steps = [] }) => steps.map(({ run }) => run))
  .join('\n')

const CI = join(PROJECT, '.ci/run')
const REPORTS: Readonly<Record<string, string>> = {
  test: 'dist/junit/source.xml',
  'test:executable': 'dist/junit/executable.xml',
  'test:fault': 'dist/junit/fault.xml',
  'test:page': 'dist/junit/page.xml',
  'test:ship': 'dist/junit/ship.xml',
}

/** Runs .ci/run on a machine where nothing can be installed. Resolves to what it asks of Bun. */
async function runCi(steps: readonly string[]): Promise<readonly string[]> {
  using folder = makeFolder()
  await Bun.write(join(folder.path, 'npx'), '#!/bin/sh\nshift 2\necho "$@"\n')
  chmodSync(join(folder.path, 'npx'), 0o755)
  symlinkSync('/usr/bin/dirname', join(folder.path, 'dirname'))
  const { stdout } = await runProgram(['/bin/bash', CI, ...steps], { env: { PATH: folder.path } })
  return stdout.trimEnd().split('\n')
}

describe('the GitHub workflows', () => {
  test.each([
    { lint: ['actionlint', '-no-color'] },
    { lint: ['zizmor', '--offline', '--quiet', '--no-progress', '--color=never'] },
  ])('pass $lint.0', async ({ lint }) => {
    if (lacks(program(lint[0] ?? ''))) return
    expect(await runIn([...lint, ...WORKFLOWS.map(pathOfWorkflow)])).toMatchObject({ exitCode: 0 })
  })

  test('check a tag, and publish it after all other jobs alone', () => {
    const needsOf = (job: string): string[] =>
      [release[job]?.needs ?? []].flat().flatMap((each) => [each, ...needsOf(each)])

    expect(release.check?.uses).toBe('./.github/workflows/check.yml')
    expect(new Set(['publish', ...needsOf('publish')])).toEqual(new Set(Object.keys(release)))
  })

  test('check each step in one job, with what it needs, and .ci/run counts the tests of its steps', async () => {
    const { check } = await jobsOf('check')
    const jobs = check?.strategy?.matrix.steps?.map((steps) => steps.split(' ')) ?? []
    const { stderr } = await runIn(['bun', 'test/check.ts', 'nothing'])
    const known = /there are (.*)\.$/m.exec(stderr)?.[1]?.split(', ') ?? []
    const stepsOfTests = known.filter((step) => step.startsWith('test'))

    expect(check?.steps?.at(-1)?.run).toBe('bash .ci/run $STEPS')
    expect(jobs).toHaveLength(4)
    expect(new Set(jobs.flat())).toEqual(new Set(known.filter((step) => step !== 'install')))
    expect(jobs.flat().filter((step) => step !== 'build')).toHaveLength(known.length - 2)
    for (const steps of jobs) expect(steps[0] === 'build').toBe(steps.some((step) => step.startsWith('test:')))
    for (const steps of [...jobs, [], ['install']]) {
      const counted = (steps.length === 0 ? stepsOfTests : steps).flatMap((step) => REPORTS[step] ?? [])
      expect(await runCi(steps)).toEqual([
        ['run', 'check', ...steps].join(' '),
        ...(steps.length === 0 ? ['run check:ship'] : []),
        ...(counted.length === 0 ? [] : [['.ci/count.ts', ...counted].join(' ')]),
      ])
    }
  })

  test('.ci/run names each failed test before the numbers', async () => {
    using folder = makeFolder()
    await Bun.write(
      join(folder.path, 'plant.test.ts'),
      `import { describe, expect, test } from 'bun:test'
describe('a <plant>', () => {
  test('grows', () => expect('seed\\nleaf').toBe(''))
  test('stays', () => {})
})
`,
    )
    await runIn(['bun', 'test', '--reporter=junit', '--reporter-outfile=report.xml'], folder.path)

    expect(await runIn(['bun', join(PROJECT, '.ci/count.ts'), 'report.xml', 'other.xml'], folder.path)).toEqual({
      stdout: `plant.test.ts:3 a <plant> > grows
    expect(received).toBe(expected)

    - ""
    + "seed
    + leaf"

    - Expected  - 1
    + Received  + 2

0 skipped
1 passed, 2 failed
`,
      stderr: 'other.xml counts no test\n',
      exitCode: 1,
    })
  })

  test('take the Bun of package.json', async () => {
    const texts = await Promise.all([...WORKFLOWS.map(pathOfWorkflow), CI].map((path) => Bun.file(path).text()))
    const found = texts.join('').match(/\bbun@[\d.]+/g) ?? []

    expect(new Set(found)).toEqual(new Set([manifest.packageManager]))
  })

  test('run only files that exist', async () => {
    const files = commands.match(/\btest\/ship\/\S+\.(?:sh|ts)\b/g) ?? []

    expect(files).toHaveLength(4)
    for (const file of files) expect(await Bun.file(join(PROJECT, file)).exists()).toBe(true)
  })
})
