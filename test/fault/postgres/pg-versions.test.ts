import { expect } from 'bun:test'
import { join } from 'node:path'
import { EXECUTABLE } from '../../support/executable.ts'
import { runProgram } from '../../support/program.ts'
import { testLong } from '../rounds.ts'

/** The servers of these versions are packages from npm. Their licence is that of PostgreSQL. */
const VERSIONS = ['15', '16', '17', '18']
const FOLDER = join(import.meta.dir, 'versions')
const PROJECT = join(import.meta.dir, '../../..')

const AT_ONCE = ['--parallel=2', '--no-isolate']
const ON_POSTGRES = ['-t', 'PostgreSQL']
/** Each round of a fault once. All versions have the same rounds. */
const ONE_ROUND = { FAULT_LONG: '1', FAULT_SEED: String(crypto.getRandomValues(new Uint32Array(1))[0]) }

/** Runs each test that uses a database once. Only from source, the tests over the wire use PostgreSQL. */
const RUNS = [
  {
    args: [
      ...AT_ONCE,
      ...ON_POSTGRES,
      './test/store/postgres/contract.test.ts',
      './test/store/copy.test.ts',
      './test/http',
    ],
    env: { TEST_EXECUTABLE: undefined, FAULT_LONG: '' },
  },
  {
    args: [
      ...AT_ONCE,
      './test/store/postgres',
      ...['copy', 'plant-fields', 'postgres', 'postgres-access'].map((name) => `./test/cli/${name}.test.ts`),
    ],
    env: { FAULT_LONG: '' },
  },
  {
    args: ['failover', 'fleet', 'outage'].map((name) => `./test/fault/postgres/pg-${name}.test.ts`),
    env: ONE_ROUND,
  },
  {
    args: [...ON_POSTGRES, ...['copy', 'tokens'].map((name) => `./test/fault/${name}.test.ts`)],
    env: ONE_ROUND,
  },
]

testLong.each(VERSIONS)('every test that uses a database passes on PostgreSQL %s', async (version) => {
  await runProgram([process.execPath, 'install', '--frozen-lockfile', '--silent'], { cwd: FOLDER })
  const programs = join(FOLDER, `node_modules/postgres-${version}/native/bin`)
  const { stdout } = await runProgram([join(programs, 'postgres'), '--version'])
  expect(stdout).toStartWith(`postgres (PostgreSQL) ${version}.`)

  const counts = { pass: 0, skip: 0, fail: 0 }
  const problems: string[] = []
  for (const { args, env } of RUNS) {
    const { exitCode, stderr } = await runProgram(
      [process.execPath, 'test/support/with-postgres.ts', process.execPath, 'test', '--timeout', '240000', ...args],
      {
        cwd: PROJECT,
        env: { ...process.env, TEST_EXECUTABLE: EXECUTABLE, PLANTSTORE_TEST_POSTGRES_BIN: programs, ...env },
      },
    )
    for (const [, count, result] of stderr.matchAll(/^ (\d+) (pass|skip|fail)$/gm)) {
      counts[result as keyof typeof counts] += Number(count)
    }
    const lines = [
      ...new Set(stderr.split('\n').filter((line) => /^(?:SKIPPED TESTS|error:|\((?:fail|skip)\))/.test(line))),
    ]
    for (const line of lines) console.log(`PostgreSQL ${version}: ${line}`)
    if (exitCode !== 0) problems.push(...lines, stderr.slice(-2000))
  }

  console.log(`${stdout.trim()}: ${JSON.stringify(counts)}`)
  expect(problems).toEqual([])
  // A test is skipped if the machine lacks a program, or the version a feature. Then the test proves nothing of this version.
  expect(counts).toEqual({ pass: expect.any(Number), skip: 0, fail: 0 })
  expect(counts.pass).toBeGreaterThan(180)
})
