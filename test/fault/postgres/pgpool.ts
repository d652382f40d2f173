import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../support/folder.ts'
import type { Cluster } from '../../support/postgres-cluster.ts'
import { endWithThisProcess, freePort } from '../../support/postgres-system.ts'
import { startProgram } from '../../support/program.ts'
import type { Requirement } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'

const PROGRAM = Bun.which('pgpool') ?? Bun.which('pgpool', { PATH: '/usr/sbin' })

export const PGPOOL: Requirement = { missing: 'pgpool is missing', isMet: () => PROGRAM !== null }

/** Starts Pgpool-II before a primary and its standbys. Each session reads from one of them, by their weights. */
export async function startPgpool(servers: readonly Cluster[], weights: readonly number[]) {
  if (PROGRAM === null) throw new Error('pgpool is missing')
  const folder = makeFolder()
  const port = freePort()
  const file = join(folder.path, 'pgpool.conf')
  const backends = servers.map(({ port }, index) => [
    `backend_hostname${index} = '127.0.0.1'`,
    `backend_port${index} = ${port}`,
    `backend_weight${index} = ${weights[index]}`,
  ])
  const paths = ['socket_dir', 'pcp_socket_dir', 'logdir', 'work_dir'].map((name) => `${name} = '${folder.path}'`)
  const settings = [
    "listen_addresses = '127.0.0.1'",
    `port = ${port}`,
    `pcp_port = ${freePort()}`,
    `pid_file_name = '${join(folder.path, 'pid')}'`,
    "backend_clustering_mode = 'streaming_replication'",
    "sr_check_user = 'plantstore'",
  ]
  writeFileSync(file, [...settings, ...paths, ...backends.flat()].join('\n'))
  const { child, stderr } = startProgram([PROGRAM, '-n', '-f', file, '-a', '/dev/null', '-F', '/dev/null'])
  endWithThisProcess(['kill', '-INT', String(child.pid)], folder.path)
  await until('Pgpool-II has started', (see) => see(stderr()).includes('successfully started'))
  return {
    url: `postgres://plantstore@127.0.0.1:${port}/postgres?sslmode=disable`,
    async [Symbol.asyncDispose]() {
      // Its processes end with it.
      child.kill('SIGINT')
      await child.exited
      folder[Symbol.dispose]()
    },
  }
}
