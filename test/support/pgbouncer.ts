import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parsePostgresUrl } from '../../src/domain/database-url.ts'
import { makeFolder } from './folder.ts'
import { AS_SERVER, freePort, ownedByServer } from './postgres-system.ts'
import { startProgram } from './program.ts'
import type { Requirement } from './requirement.ts'

const PROGRAM = Bun.which('pgbouncer') ?? Bun.which('pgbouncer', { PATH: '/usr/sbin' })

export const PGBOUNCER: Requirement = { missing: 'pgbouncer is missing', isMet: () => PROGRAM !== null }

/** Starts a pooler of transactions before a database, with so few connections that all who come share them. */
export async function startPgBouncer(url: string, connections: number) {
  const address = parsePostgresUrl(url)
  if (typeof address === 'string' || PROGRAM === null) throw new Error('there is no pgbouncer, or no server')
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
  while (!stderr().includes('process up')) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error(`pgbouncer did not start: ${stderr()}`)
    await Bun.sleep(5)
  }
  return {
    /** The same database, by the pooler. */
    url: `postgres://${encodeURIComponent(user)}@127.0.0.1:${ownPort}/${database}?sslmode=disable`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
      folder[Symbol.dispose]()
    },
  }
}
