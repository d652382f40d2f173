import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import manifest from '../../package.json'
import { makeFolder } from '../support/folder.ts'
import { lacks, program } from '../support/requirement.ts'
import { PROJECT, runIn } from './run.ts'

const WORKFLOW = join(PROJECT, '.github/workflows/check.yml')
const text = await Bun.file(WORKFLOW).text()

/** The structure of a workflow, which actionlint checks. */
interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly steps: readonly { readonly run?: string }[] }>>
}

const workflow = Bun.YAML.parse(text) as Workflow
const stepsOf = (job: string): readonly string[] => workflow.jobs[job]?.steps.flatMap(({ run }) => run ?? []) ?? []

describe('the GitHub workflow', () => {
  test.skipIf(lacks(program('actionlint')))('passes actionlint, which finds faults in a wrong one', async () => {
    using folder = makeFolder()
    const lint = (file: string) => runIn(['actionlint', '-no-color', '-oneline', file])
    const wrong = join(folder.path, 'wrong.yml')
    await Bun.write(wrong, text.replace('github.ref_type', 'github.reff_type').replace('ubuntu-24.04', 'ubuntu-1.04'))
    const found = await lint(wrong)

    expect(await lint(WORKFLOW)).toEqual({ stdout: '', stderr: '', exitCode: 0 })
    expect(found.exitCode).toBe(1)
    expect(found.stdout).toContain('"reff_type" is not defined')
    expect(found.stdout).toContain('"ubuntu-1.04" is unknown')
  })

  test('runs .ci/run, and releases a tag that has passed and equals the version', () => {
    expect(stepsOf('check').at(-1)).toBe('bash .ci/run')
    expect(workflow.jobs.release).toMatchObject({ needs: 'check', if: "github.ref_type == 'tag'" })
    expect(stepsOf('release')).toEqual(
      expect.arrayContaining([
        `test "$GITHUB_REF_NAME" = "v$(node --print 'require("./package.json").version')"`,
        `npx --yes ${manifest.packageManager} run audit`,
        `npx --yes ${manifest.packageManager} run release`,
      ]),
    )
  })
})
