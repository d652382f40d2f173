import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import manifest from '../../package.json'
import { lacks, program } from '../support/requirement.ts'
import { PROJECT, runIn } from './run.ts'
import { jobsOf, pathOfWorkflow, WORKFLOWS } from './workflow.ts'

const release = await jobsOf('release')
const commandsOf = (job: string): readonly string[] => release[job]?.steps?.flatMap(({ run }) => run ?? []) ?? []

describe('the GitHub workflows', () => {
  test.each([
    { lint: ['actionlint', '-no-color'] },
    { lint: ['zizmor', '--offline', '--quiet', '--no-progress', '--color=never'] },
  ])('pass $lint.0', async ({ lint }) => {
    if (lacks(program(lint[0] ?? ''))) return
    expect(await runIn([...lint, ...WORKFLOWS.map(pathOfWorkflow)])).toMatchObject({ exitCode: 0 })
  })

  test('check a tag by .ci/run, and release it only after that, if it is the version of this repository', async () => {
    const needs = Object.fromEntries(Object.entries(release).map(([name, job]) => [name, job.needs]))
    const check = await jobsOf('check')

    expect(check.check?.steps?.at(-1)?.run).toBe('bash .ci/run')
    expect(release.check?.uses).toBe('./.github/workflows/check.yml')
    expect(needs).toEqual({
      check: undefined,
      build: undefined,
      compare: 'build',
      try: 'build',
      image: ['check', 'compare', 'try'],
      publish: 'image',
    })
    expect(commandsOf('build')).toEqual([
      expect.stringContaining(`test "$GITHUB_REF_NAME" = "v$(node --print 'require("./package.json").version')"\n`),
      expect.stringContaining('go install'),
      `npx --yes ${manifest.packageManager} run audit`,
      `npx --yes ${manifest.packageManager} run release`,
    ])
  })

  test('run only files that exist', async () => {
    const commands = Object.keys(release).flatMap(commandsOf).join('\n')
    const files = commands.match(/\btest\/ship\/\S+\.(?:sh|ts)\b/g) ?? []

    expect(files).toHaveLength(4)
    for (const file of files) expect(await Bun.file(join(PROJECT, file)).exists()).toBe(true)
  })
})
