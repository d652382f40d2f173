import { dropDatabases, POSTGRES_SERVER } from './postgres.ts'
import { startCluster, templateData } from './postgres-cluster.ts'
import { lacks } from './requirement.ts'

/** Runs a command with one server for all its tests, unless PLANTSTORE_TEST_POSTGRES names one. Returns its exit code. */
async function runWithPostgres(command: readonly string[]): Promise<number> {
  // The executable warns of PLANTSTORE_ variables that it does not know.
  const { PLANTSTORE_TEST_POSTGRES: given, PLANTSTORE_TEST_POSTGRES_BIN: programs, ...rest } = process.env
  const env = programs === undefined ? rest : { ...rest, TEST_POSTGRES_BIN: programs }
  if (given !== undefined) {
    const prefix = `test_${crypto.randomUUID().slice(0, 8)}`
    const exitCode = await runToEnd(command, { ...env, TEST_POSTGRES: given, TEST_DATABASES: prefix })
    await dropDatabases(given, prefix)
    return exitCode
  }
  if (lacks(POSTGRES_SERVER)) return runToEnd(command, env)
  using cluster = await startCluster({ max_connections: '500' })
  return await runToEnd(command, { ...env, TEST_POSTGRES: cluster.url, TEST_POSTGRES_DATA: templateData() })
}

async function runToEnd(command: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = Bun.spawn([...command], { env, stdio: ['inherit', 'inherit', 'inherit'] })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  return child.exited
}

process.exit(await runWithPostgres(process.argv.slice(2)))
