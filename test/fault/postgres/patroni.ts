import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MEMORY, makeFolder } from '../../support/folder.ts'
import { makeServerFolder } from '../../support/postgres-cluster.ts'
import { AS_SERVER, endWithThisProcess, freePort, POSTGRES_PROGRAMS } from '../../support/postgres-system.ts'
import type { Requirement } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { processesOf } from './processes.ts'

export const PATRONI: Requirement = {
  missing: 'patroni, etcd or postgresql is missing',
  isMet: () => Boolean(Bun.which('patroni') && Bun.which('etcd') && POSTGRES_PROGRAMS),
}

const NODES = ['node0', 'node1', 'node2']
const WAIT = { limitMs: 120_000, lookMs: 100 }
/** Ends Patroni and etcd by the ids in their files, and the databases, which outlive Patroni. */
const KILL_ALL = 'kill -KILL $(head -qn1 "$0"/*.pid "$0"/*/*.pid "$0"/*/data/postmaster.pid)'
const OWNER = 'plantstore'
const PASSWORD = 'Sesame-99'

/** A role of a node (https://patroni.readthedocs.io/en/latest/rest_api.html). */
type Role = 'primary' | 'sync' | 'replica'

interface Node {
  readonly name: string
  readonly port: number
  /** The port of Patroni's REST API. */
  readonly rest: number
  readonly path: string
  process: Bun.Subprocess | undefined
}

/**
 * Starts three nodes of Patroni and etcd on 127.0.0.1. With `synchronous_mode_strict` a commit always needs a second node that
 * has it on disk.
 */
export async function startPatroni() {
  const folder = makeFolder(MEMORY)
  const killAll = ['sh', '-c', KILL_ALL, folder.path]
  endWithThisProcess(killAll, folder.path)
  const etcd = startEtcd(folder.path)
  const nodes = NODES.map((name): Node => {
    const path = makeServerFolder(folder.path, name)
    const node = { name, port: freePort(), rest: freePort(), path, process: undefined }
    writeFileSync(join(path, 'patroni.yml'), configuration(node, etcd))
    return node
  })
  for (const node of nodes) start(node)
  const nodesIn = async (role: Role): Promise<readonly Node[]> => {
    // A node that was killed does not answer.
    const has = ({ rest }: Node) =>
      fetch(`http://127.0.0.1:${rest}/${role}`).then(
        ({ ok }) => ok,
        () => false,
      )
    const answers = await Promise.all(nodes.map(has))
    return nodes.filter((_, index) => answers[index])
  }
  const untilThereIs = (role: Role) => until(`a node is ${role}`, async () => (await nodesIn(role))[0], WAIT)
  await untilThereIs('primary')
  await untilThereIs('sync')
  return {
    nodes,
    start,
    kill,
    untilThereIs,
    /** Waits for a primary, and for two replicas with all of its data. One of them is synchronous. */
    async untilAllRun(): Promise<void> {
      for (const [role, count] of [['primary', 1] as const, ['replica', 2] as const, ['sync', 1] as const]) {
        await until(`${count} nodes are ${role}`, async () => (await nodesIn(role)).length === count, WAIT)
      }
    },
    /** The URL of the first database, through a port that leads to the primary. */
    urlBy: (port: number) => `postgres://${OWNER}:${PASSWORD}@127.0.0.1:${port}/postgres?sslmode=disable`,
    [Symbol.dispose]() {
      Bun.spawnSync(killAll, { stderr: 'ignore' })
      folder[Symbol.dispose]()
    },
  }
}

/** Returns the address for clients. */
function startEtcd(parent: string): string {
  const [client, peer] = [`127.0.0.1:${freePort()}`, `http://127.0.0.1:${freePort()}`] as const
  const path = makeServerFolder(parent, 'etcd')
  spawn(
    join(parent, 'etcd.log'),
    ...['etcd', '--name', 'etcd', '--data-dir', path, '--initial-cluster', `etcd=${peer}`],
    ...['--listen-client-urls', `http://${client}`, '--advertise-client-urls', `http://${client}`],
    ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
  )
  return client
}

function start(node: Node): void {
  node.process = spawn(join(node.path, 'log'), 'patroni', join(node.path, 'patroni.yml'))
}

/** Kills a database, or all processes of its machine. Patroni restarts a database that was killed alone. */
async function kill(node: Node, what: 'database' | 'machine'): Promise<void> {
  const data = join(node.path, 'data')
  const pids = existsSync(join(data, 'postmaster.pid')) ? processesOf({ data }) : []
  if (what === 'machine') {
    node.process?.kill('SIGKILL')
    await node.process?.exited
  }
  // Some may have ended with their parent.
  Bun.spawnSync(['kill', '-KILL', ...pids.map(String)], { stderr: 'ignore' })
}

function spawn(log: string, ...command: readonly string[]) {
  const [stdout, stderr] = [Bun.file(log), Bun.file(`${log}.errors`)]
  const child = Bun.spawn([...AS_SERVER, ...command], { stdio: ['ignore', stdout, stderr] })
  writeFileSync(`${log}.pid`, `${child.pid}\n`)
  return child
}

/** The shortest times that Patroni allows. `primary_start_timeout: 0` replaces a primary that has ended at once. */
const configuration = (node: Node, etcd: string): string =>
  JSON.stringify({
    scope: 'plantstore',
    name: node.name,
    restapi: { listen: `127.0.0.1:${node.rest}`, connect_address: `127.0.0.1:${node.rest}` },
    etcd3: { host: etcd },
    bootstrap: {
      dcs: {
        ttl: 20,
        loop_wait: 1,
        retry_timeout: 3,
        primary_start_timeout: 0,
        synchronous_mode: true,
        synchronous_mode_strict: true,
        postgresql: { use_pg_rewind: true, parameters: { max_connections: 100 } },
      },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }],
      pg_hba: [
        'local all all trust',
        'host all all 127.0.0.1/32 scram-sha-256',
        'host replication all 127.0.0.1/32 scram-sha-256',
      ],
    },
    postgresql: {
      listen: `127.0.0.1:${node.port}`,
      connect_address: `127.0.0.1:${node.port}`,
      data_dir: join(node.path, 'data'),
      bin_dir: POSTGRES_PROGRAMS,
      pgpass: join(node.path, 'pgpass'),
      remove_data_directory_on_rewind_failure: true,
      authentication: {
        superuser: { username: OWNER, password: PASSWORD },
        replication: { username: 'replicator', password: PASSWORD },
      },
      parameters: { unix_socket_directories: node.path },
    },
  })
