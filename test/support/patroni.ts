import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { processesOf } from '../fault/postgres/processes.ts'
import { makeFolder } from './folder.ts'
import { AS_SERVER, endWithThisProcess, freePort, ownedByServer, POSTGRES_PROGRAMS } from './postgres-system.ts'
import type { Requirement } from './requirement.ts'

export const PATRONI: Requirement = {
  missing: 'patroni, etcd or postgresql is missing',
  isMet: () => Boolean(Bun.which('patroni') && Bun.which('etcd') && POSTGRES_PROGRAMS),
}

const NODES = [0, 1, 2]
const START_TIMEOUT_MS = 120_000
const LOOK_MS = 100
/** Ends what has left its number in the folder: Patroni, etcd, and the databases, which Patroni leaves behind. */
const KILL_ALL = 'kill -KILL $(head -qn1 "$0"/*.pid "$0"/*/*.pid "$0"/*/data/postmaster.pid)'
const MEMORY = '/dev/shm'
const OWNER = 'plantstore'
const PASSWORD = 'Sesame-99'

/** What Patroni tells of a node (https://patroni.readthedocs.io/en/latest/rest_api.html). */
type Check = 'primary' | 'sync' | 'replica'

/**
 * Three nodes of Patroni with three of etcd on the loopback. A success needs a second node that has it on disk, whatever
 * happens (`synchronous_mode_strict`).
 */
export async function startPatroni() {
  const folder = makeFolder(existsSync(MEMORY) ? MEMORY : undefined)
  chmodSync(folder.path, 0o755)
  endWithThisProcess(['sh', '-c', KILL_ALL, folder.path], folder.path)
  const etcds = NODES.map(() => ({ client: freePort(), peer: freePort() }))
  const nodes = NODES.map((index) => ({
    name: `node${index}`,
    port: freePort(),
    rest: freePort(),
    path: join(folder.path, `node${index}`),
    process: undefined as Bun.Subprocess | undefined,
  }))
  type Node = (typeof nodes)[number]

  const start = (node: Node) => {
    node.process = spawn(join(node.path, 'log'), 'patroni', join(node.path, 'patroni.yml'))
  }
  /** As when its machine loses its power, with or without what restarts it. */
  const kill = async (node: Node, what: 'database' | 'machine') => {
    const pids = existsSync(join(node.path, 'data', 'postmaster.pid'))
      ? processesOf({ data: join(node.path, 'data') })
      : []
    if (what === 'machine') {
      node.process?.kill('SIGKILL')
      await node.process?.exited
      node.process = undefined
    }
    for (const pid of pids) killOne(pid)
  }
  const nodeThatIs = async (check: Check): Promise<Node | undefined> => {
    for (const node of nodes) if (await is(node.rest, check)) return node
    return undefined
  }
  const untilThereIs = async (check: Check): Promise<Node> => {
    const deadlineMs = performance.now() + START_TIMEOUT_MS
    for (;;) {
      const node = await nodeThatIs(check)
      if (node !== undefined) return node
      if (performance.now() > deadlineMs) throw new Error(`there is no node that is ${check}`)
      await Bun.sleep(LOOK_MS)
    }
  }

  /** A primary, and two others that have what it has. */
  const untilAllRun = async () => {
    const deadlineMs = performance.now() + START_TIMEOUT_MS
    const count = async (check: Check) =>
      (await Promise.all(nodes.map((node) => is(node.rest, check)))).filter(Boolean).length
    while ((await count('primary')) !== 1 || (await count('replica')) !== 2 || (await count('sync')) !== 1) {
      if (performance.now() > deadlineMs) throw new Error('not all nodes run')
      await Bun.sleep(LOOK_MS)
    }
  }

  const members = etcds.map(({ peer }, index) => `etcd${index}=http://127.0.0.1:${peer}`).join()
  const coordinators = etcds.map(({ client, peer }, index) => {
    const path = join(folder.path, `etcd${index}`)
    makeServerFolder(path)
    return spawn(
      join(folder.path, `etcd${index}.log`),
      'etcd',
      ...['--name', `etcd${index}`, '--data-dir', path, '--initial-cluster', members],
      ...[
        '--listen-client-urls',
        `http://127.0.0.1:${client}`,
        '--advertise-client-urls',
        `http://127.0.0.1:${client}`,
      ],
      ...[
        '--listen-peer-urls',
        `http://127.0.0.1:${peer}`,
        '--initial-advertise-peer-urls',
        `http://127.0.0.1:${peer}`,
      ],
    )
  })
  for (const node of nodes) {
    makeServerFolder(node.path)
    writeFileSync(
      join(node.path, 'patroni.yml'),
      configuration(
        node,
        etcds.map(({ client }) => client),
      ),
    )
    start(node)
  }

  const stop = async () => {
    for (const node of nodes) await kill(node, 'machine')
    for (const coordinator of coordinators) coordinator.kill('SIGKILL')
    await Promise.all(coordinators.map(({ exited }) => exited))
    folder[Symbol.dispose]()
  }
  try {
    await untilThereIs('primary')
    await untilThereIs('sync')
  } catch (error) {
    await stop()
    throw error
  }
  return {
    nodes,
    start,
    kill,
    untilThereIs,
    untilAllRun,
    /** The URL of the first database, through a port that leads to the primary. */
    urlBy: (port: number) => `postgres://${OWNER}:${PASSWORD}@127.0.0.1:${port}/postgres?sslmode=disable`,
    [Symbol.asyncDispose]: stop,
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

async function is(port: number, check: Check): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/${check}`)).status === 200
  } catch {
    // A node that was killed.
    return false
  }
}

function makeServerFolder(path: string): void {
  mkdirSync(path, { mode: 0o700 })
  ownedByServer(path)
}

function killOne(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    // It has ended with the first of them.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/** The shortest times that Patroni's documentation allows. A database that ends by itself is not waited for. */
const configuration = (
  node: { readonly name: string; readonly port: number; readonly rest: number; readonly path: string },
  etcdPorts: readonly number[],
) =>
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
