import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { HERE, PROJECT, run, SCRATCH } from './tools.ts'

const ANSWERS = join(SCRATCH, 'prism-answers.txt')
const TEST_MAX_MS = 120_000

/** Runs tests of the executable behind Prism, which validates every answer by a document. */
export async function runBehindPrism(document: string, tests: readonly string[]) {
  rmSync(ANSWERS, { force: true })
  const { stdout, stderr } = await run(
    [process.execPath, 'test', '--parallel=2', '--timeout', String(TEST_MAX_MS), ...tests],
    {
      cwd: PROJECT,
      env: {
        TEST_PROXY: join(HERE, 'prism/proxy.ts'),
        TEST_PROXY_DOCUMENT: document,
        TEST_PROXY_ANSWERS: ANSWERS,
      },
    },
  )
  const lines = (stdout + stderr).split('\n')
  return {
    passed: lines.filter((line) => line.startsWith('(pass)')).length,
    failed: [...new Set(lines.filter((line) => line.startsWith('(fail)')).map(withoutTime))],
    violations: lines.filter((line) => line.includes('error: Prism: ')),
    /** Method, route and status of each answer. */
    answers: existsSync(ANSWERS) ? readFileSync(ANSWERS, 'utf8').trim().split('\n') : [],
  }
}

const withoutTime = (line: string): string => line.replace(/ \[[\d.]+m?s\]$/, '')
