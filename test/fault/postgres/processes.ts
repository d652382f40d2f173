import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Cluster } from '../../support/postgres-cluster.ts'

/** The processes of a PostgreSQL server. The first one started all others. */
export function processesOf({ data }: Pick<Cluster, 'data'>): readonly number[] {
  const first = Number(readFileSync(join(data, 'postmaster.pid'), 'latin1').split('\n')[0])
  return [first, ...childrenOf(first)]
}

/** Stops all processes of a server, until it is disposed of. */
export function freeze(cluster: Pick<Cluster, 'data'>) {
  const [first = 0] = processesOf(cluster)
  // Without the first process there are no new ones.
  process.kill(first, 'SIGSTOP')
  const others = childrenOf(first)
  for (const pid of others) process.kill(pid, 'SIGSTOP')
  return {
    [Symbol.dispose]() {
      for (const pid of [...others, first]) process.kill(pid, 'SIGCONT')
    },
  }
}

const childrenOf = (pid: number): readonly number[] =>
  (readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').match(/\d+/g) ?? []).map(Number)
