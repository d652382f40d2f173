import { expect } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { EXECUTABLE } from '../../support/executable.ts'
import { runProgram } from '../../support/program.ts'
import { ROUNDS_TIMEOUT_MS, testLong } from '../rounds.ts'

/** The servers of these versions are packages from npm. Their licence is that of PostgreSQL. */
const VERSIONS = ['15', '16', '17', '18']
const FOLDER = join(import.meta.dir, 'versions')
const PROJECT = join(import.meta.dir, '../../..')

/** The tests of the store, over the wire, of the command line and of faults that use a server. */
const SUITES = [
  './test/store/contract.test.ts',
  './test/store/copy.test.ts',
  './test/store/postgres',
  './test/http',
  './test/cli/copy.test.ts',
  './test/cli/postgres.test.ts',
  './test/cli/postgres-access.test.ts',
  ...readdirSync(import.meta.dir)
    .filter((name) => /^pg-(?!versions).*\.test\.ts$/.test(name))
    .map((name) => `./test/fault/postgres/${name}`),
]

testLong.each(VERSIONS)(
  'every test that uses a database passes on PostgreSQL %s',
  async (version) => {
    await runProgram([process.execPath, 'install', '--frozen-lockfile', '--silent'], { cwd: FOLDER })
    const programs = join(FOLDER, `node_modules/postgres-${version}/native/bin`)
    const { stdout } = await runProgram([join(programs, 'postgres'), '--version'])
    expect(stdout).toStartWith(`postgres (PostgreSQL) ${version}.`)

    const { exitCode, stderr } = await runProgram(
      [process.execPath, 'test/support/with-postgres.ts', process.execPath, 'test', '--timeout', '240000', ...SUITES],
      {
        cwd: PROJECT,
        env: { ...process.env, PLANTSTORE_TEST_POSTGRES_BIN: programs, TEST_EXECUTABLE: EXECUTABLE, FAULT_LONG: '' },
      },
    )

    const failed = stderr.split('\n').filter((line) => line.startsWith('(fail)'))
    console.log(`PostgreSQL ${version}: ${stderr.trim().split('\n').slice(-5).join(', ')}`)
    expect({ exitCode, failed }).toEqual({ exitCode: 0, failed: [] })
  },
  ROUNDS_TIMEOUT_MS,
)
