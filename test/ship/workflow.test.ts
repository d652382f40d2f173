import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import manifest from '../../package.json'
import { makeFolder } from '../support/folder.ts'
import { lacks, program } from '../support/requirement.ts'
import { PROJECT, runIn } from './run.ts'
import { jobsOf, pathOfWorkflow, WORKFLOWS } from './workflow.ts'

const release = await jobsOf('release')
const commandsOf = (job: string): readonly string[] => release[job]?.steps?.flatMap(({ run }) => run ?? []) ?? []

/** Makes a copy of release.yml with other texts, and runs a program on it. */
async function lintChanged(changes: Readonly<Record<string, string>>, command: readonly string[]) {
  using folder = makeFolder()
  const path = join(folder.path, 'wrong.yml')
  const text = await Bun.file(pathOfWorkflow('release')).text()
  const changed = Object.entries(changes).reduce((all, [from, to]) => all.replace(from, to), text)
  await Bun.write(path, changed)
  return await runIn([...command, path])
}

describe('the GitHub workflows', () => {
  const actionlint = ['actionlint', '-no-color', '-oneline']
  const zizmor = ['zizmor', '--offline', '--quiet', '--no-progress', '--color=never']

  test.skipIf(lacks(program('actionlint')))('pass actionlint, which finds faults in a wrong one', async () => {
    const wrong = { 'steps.push.outputs': 'steps.pull.outputs', 'ubuntu-24.04-arm': 'ubuntu-1.04-arm' }
    const found = await lintChanged(wrong, actionlint)

    expect(await runIn([...actionlint, ...WORKFLOWS.map(pathOfWorkflow)])).toEqual({
      stdout: '',
      stderr: '',
      exitCode: 0,
    })
    expect(found.exitCode).toBe(1)
    expect(found.stdout).toContain('property "pull" is not defined')
    expect(found.stdout).toContain('"ubuntu-1.04-arm" is unknown')
  })

  test.skipIf(lacks(program('zizmor')))('pass zizmor, which finds an unpinned action and an injection', async () => {
    const wrong = {
      '@3d3c42e5aac5ba805825da76410c181273ba90b1': '@v7',
      '"$IMAGE@$DIGEST"': `\${{ github.head_ref }}`,
    }
    const passed = await runIn([...zizmor, ...WORKFLOWS.map(pathOfWorkflow)])
    const found = await lintChanged(wrong, zizmor)

    expect({ exitCode: passed.exitCode, findings: passed.stdout.includes('[') }).toEqual({
      exitCode: 0,
      findings: false,
    })
    expect(found.exitCode).toBe(14)
    expect(found.stdout).toContain('error[unpinned-uses]')
    expect(found.stdout).toContain('error[template-injection]')
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

  test('pin each action by a commit, keep no credentials, and write only where a job publishes', async () => {
    const jobs = [...Object.values(await jobsOf('check')), ...Object.values(release)]
    const steps = jobs.flatMap((job) => job.steps ?? []).filter(({ uses }) => uses !== undefined)
    const writing = Object.entries(release).flatMap(([name, { permissions = {} }]) =>
      Object.keys(permissions).flatMap((right) => (permissions[right] === 'write' ? `${name}: ${right}` : [])),
    )

    expect(steps.filter(({ uses = '' }) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/.test(uses))).toEqual([])
    expect(steps.filter(({ uses }) => uses?.startsWith('actions/checkout@')).map((step) => step.with)).toEqual(
      Array(6).fill({ 'persist-credentials': false }),
    )
    expect(writing).toEqual([
      'image: attestations',
      'image: id-token',
      'image: packages',
      'publish: attestations',
      'publish: contents',
      'publish: id-token',
    ])
  })

  test('run only files that exist', async () => {
    const commands = Object.keys(release).flatMap(commandsOf).join('\n')
    const files = commands.match(/\btest\/ship\/\S+\.(?:sh|ts)\b/g) ?? []

    expect(files).toHaveLength(4)
    for (const file of files) expect(await Bun.file(join(PROJECT, file)).exists()).toBe(true)
  })
})
