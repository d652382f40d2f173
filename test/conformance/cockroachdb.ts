import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { APPLICATION_NAME } from '../../src/store/postgres/driver.ts'
import { startCluster } from '../support/postgres-cluster.ts'
import { buildGo, PROJECT, runWell } from './tools.ts'

/** A line of PostgreSQL's log as JSON (https://www.postgresql.org/docs/15/runtime-config-logging.html). */
interface LogLine {
  readonly application_name?: string
  readonly message?: string
}

/** The model sends what administrators send. */
const MODEL = './test/http/socket/plants-model.test.ts'

/** Runs the tests of the stores on a PostgreSQL server, and returns every statement that a store sent, each once. */
export async function captureStatements(): Promise<readonly string[]> {
  using cluster = await startCluster({
    max_connections: '500',
    logging_collector: 'on',
    log_destination: 'jsonlog',
    log_directory: 'statements',
    log_rotation_size: '0',
    log_statement: 'all',
  })
  const tests = ['test', '--timeout', '120000', './test/store/postgres', './test/store/copy.test.ts', MODEL]
  await runWell([process.execPath, 'test/support/with-postgres.ts', process.execPath, ...tests], {
    cwd: PROJECT,
    env: { PLANTSTORE_TEST_POSTGRES: cluster.url },
  })
  const folder = join(cluster.data, 'statements')
  const lines = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n'))
    .map((line): LogLine => JSON.parse(line))
  const statements = lines
    .filter((line) => line.application_name === APPLICATION_NAME)
    .flatMap(({ message = '' }) => /^(?:statement|execute [^:]*): (.*)/s.exec(message)?.[1] ?? [])
  return [...new Set(statements)]
}

/** Parses statements by the parser of CockroachDB. Returns its errors. */
export async function parseByCockroachdb(statements: readonly string[]): Promise<readonly string[]> {
  const parser = await buildGo('cockroachdb', '.')
  return JSON.parse(await runWell([parser], { input: JSON.stringify(statements) }))
}
