import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parsePostgresUrl } from '../../../src/database-url.ts'
import { makeFolder } from '../../support/folder.ts'
import { AS_SERVER, freePort, ownedByServer } from '../../support/postgres-system.ts'
import { startProgram } from '../../support/program.ts'
import type { Requirement } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'

const PROGRAM = Bun.which('pgbouncer') ?? Bun.which('pgbouncer', { PATH: '/usr/sbin' })

export const PGBOUNCER: Requirement = { missing: 'pgbouncer is missing', isMet: () => PROGRAM !== null }

/** Starts PgBouncer before a database. All clients share these connections, one per transaction. */
export async function startPgBouncer(url: string, connections: number) {
  const address = parsePostgresUrl(url)
  if (typeof address === 'string' || PROGRAM === null) throw new Error('pgbouncer or the database is missing')
  const { host, port, user, database } = address
  const folder = makeFolder()
  const ownPort = freePort()
  const file = join(folder.path, 'pgbouncer.ini')
  writeFileSync(
    file,
    `[databases]
${database} = host=${host} port=${port} dbname=${database} user=${user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${ownPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
`,
  )
  chmodSync(folder.path, 0o755)
  ownedByServer(file)
  const { child, stderr } = startProgram([...AS_SERVER, PROGRAM, file])
  await until('pgbouncer is up', (see) => {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`pgbouncer did not start: ${stderr()}`)
    return see(stderr()).includes('process up')
  })
  return {
    /** The URL of the same database through PgBouncer. */
    url: `postgres://${encodeURIComponent(user)}@127.0.0.1:${ownPort}/${database}?sslmode=disable`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
      folder[Symbol.dispose]()
    },
  }
}
