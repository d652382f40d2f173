import { POSTGRES_IS_SKIPPED, startCluster } from './postgres.ts'

/** Runs a command with one server for all of its tests, unless PLANTSTORE_TEST_POSTGRES names one; and ends as it does. */
async function runWithPostgres(command: readonly string[]): Promise<number> {
  if (POSTGRES_IS_SKIPPED || process.env.PLANTSTORE_TEST_POSTGRES !== undefined) return runToEnd(command, {})
  using cluster = await startCluster({ max_connections: '500' })
  return await runToEnd(command, { PLANTSTORE_TEST_POSTGRES: cluster.url })
}

async function runToEnd(command: readonly string[], env: Readonly<Record<string, string>>): Promise<number> {
  const child = Bun.spawn([...command], { env: { ...process.env, ...env }, stdio: ['inherit', 'inherit', 'inherit'] })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  return child.exited
}

process.exit(await runWithPostgres(process.argv.slice(2)))
