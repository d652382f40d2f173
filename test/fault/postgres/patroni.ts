import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MEMORY, makeFolder } from '../../support/folder.ts'
import {
  AS_SERVER,
  endWithThisProcess,
  freePort,
  ownedByServer,
  POSTGRES_PROGRAMS,
} from '../../support/postgres-system.ts'
import type { Requirement } from '../../support/requirement.ts'
import { until } from '../../support/until.ts'
import { processesOf } from './processes.ts'

export const PATRONI: Requirement = {
  missing: 'patroni, etcd or postgresql is missing',
  isMet: () => Boolean(Bun.which('patroni') && Bun.which('etcd') && POSTGRES_PROGRAMS),
}

const NODES = [0, 1, 2]
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
 * Starts three nodes of Patroni and three of etcd on 127.0.0.1. With `synchronous_mode_strict` a commit always needs a second
 * node that has it on disk.
 */
export async function startPatroni() {
  const folder = makeFolder(MEMORY)
  chmodSync(folder.path, 0o755)
  endWithThisProcess(['sh', '-c', KILL_ALL, folder.path], folder.path)
  const etcd = startEtcd(folder.path)
  const nodes = NODES.map((index) => makeNode(folder.path, `node${index}`, etcd.ports))
  for (const node of nodes) start(node)
  const untilThereIs = (role: Role) => until(`a node is ${role}`, async () => (await nodesIn(role, nodes))[0], WAIT)
  await untilThereIs('primary')
  await untilThereIs('sync')
  return {
    nodes,
    start,
    kill,
    untilThereIs,
    /** Waits for a primary, and for two replicas with all of its data. One of them is synchronous. */
    untilAllRun: () =>
      until(
        'all nodes run',
        async () => {
          const roles = await Promise.all((['primary', 'replica', 'sync'] as const).map((role) => nodesIn(role, nodes)))
          return roles.map(({ length }) => length).join() === '1,2,1'
        },
        WAIT,
      ),
    /** The URL of the first database, through a port that leads to the primary. */
    urlBy: (port: number) => `postgres://${OWNER}:${PASSWORD}@127.0.0.1:${port}/postgres?sslmode=disable`,
    async [Symbol.asyncDispose]() {
      for (const node of nodes) await kill(node, 'machine')
      await etcd.stop()
      folder[Symbol.dispose]()
    },
  }
}

function startEtcd(parent: string) {
  const members = NODES.map((index) => ({ name: `etcd${index}`, client: freePort(), peer: freePort() }))
  const cluster = members.map(({ name, peer }) => `${name}=http://127.0.0.1:${peer}`).join()
  const children = members.map(({ name, client, peer }) => {
    const path = join(parent, name)
    makeServerFolder(path)
    const [clientUrl, peerUrl] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`]
    return spawn(
      join(parent, `${name}.log`),
      'etcd',
      ...['--name', name, '--data-dir', path, '--initial-cluster', cluster],
      ...['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
    )
  })
  return {
    ports: members.map(({ client }) => client),
    async stop() {
      for (const child of children) child.kill('SIGKILL')
      await Promise.all(children.map(({ exited }) => exited))
    },
  }
}

function makeNode(parent: string, name: string, etcdPorts: readonly number[]): Node {
  const node: Node = { name, port: freePort(), rest: freePort(), path: join(parent, name), process: undefined }
  makeServerFolder(node.path)
  writeFileSync(join(node.path, 'patroni.yml'), configuration(node, etcdPorts))
  return node
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
    node.process = undefined
  }
  // Some may have ended with their parent.
  Bun.spawnSync(['kill', '-KILL', ...pids.map(String)], { stderr: 'ignore' })
}

async function nodesIn(role: Role, nodes: readonly Node[]): Promise<readonly Node[]> {
  const answers = await Promise.all(nodes.map(({ rest }) => hasRole(rest, role)))
  return nodes.filter((_, index) => answers[index])
}

async function hasRole(port: number, role: Role): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/${role}`)).status === 200
  } catch {
    // The node was killed.
    return false
  }
}

function spawn(log: string, ...command: readonly string[]) {
  const child = Bun.spawn([...AS_SERVER, ...command], {
    stdin: 'ignore',
    stdout: Bun.file(log),
    stderr: Bun.file(`${log}.errors`),
  })
  writeFileSync(`${log}.pid`, `${child.pid}\n`)
  return child
}

function makeServerFolder(path: string): void {
  mkdirSync(path, { mode: 0o700 })
  ownedByServer(path)
}

/** The shortest times that Patroni allows. `primary_start_timeout: 0` replaces a primary that has ended at once. */
const configuration = (node: Node, etcdPorts: readonly number[]): string =>
  JSON.stringify({
    scope: 'plantstore',
    name: node.name,
    restapi: { listen: `127.0.0.1:${node.rest}`, connect_address: `127.0.0.1:${node.rest}` },
    etcd3: { hosts: etcdPorts.map((port) => `127.0.0.1:${port}`) },
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
