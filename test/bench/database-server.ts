import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { administer, urlOf } from '../support/postgres.ts'
import { startCluster } from '../support/postgres-cluster.ts'
import { cpuMs } from '../support/process.ts'
import { createTokenIn } from '../support/tokens.ts'
import type { Bench } from './rows/row.ts'
import { SCRATCH, type Workspace } from './workspace.ts'

/** The name that stands for a server that the benchmark starts itself. */
export const PRIVATE = 'private'

/** A PostgreSQL server for the databases of the benchmark. */
export interface DatabaseServer extends Disposable {
  readonly url: string
  /** The first of its processes, if the benchmark has started it. */
  readonly pid?: number
  /** The CPU time of all its processes so far, if known. */
  readonly cpuMs?: () => number
}

/** A database on such a server, with a token. */
export interface DatabaseSeed {
  readonly url: string
  readonly token: string
  /** A file with the token on one line. */
  readonly tokensFile: string
  /** Copies the database. PostgreSQL refuses this while a client is connected. */
  copy(): Promise<string>
}

/** Takes the server of a URL, or starts one on a real disk, with default settings. */
export async function openDatabaseServer(database: string): Promise<DatabaseServer> {
  if (database !== PRIVATE) return { url: database, [Symbol.dispose]: () => {} }
  mkdirSync(SCRATCH, { recursive: true })
  const cluster = await startCluster({}, { parent: SCRATCH })
  try {
    const pid = Number.parseInt(readFileSync(join(cluster.data, 'postmaster.pid'), 'utf8'), 10)
    return { url: cluster.url, pid, cpuMs: () => familyCpuMs(pid), [Symbol.dispose]: cluster[Symbol.dispose] }
  } catch (error) {
    cluster[Symbol.dispose]()
    throw error
  }
}

/** The PostgreSQL server of a run. Throws if there is none. */
export function requireDatabaseServer({ databaseServer }: Pick<Bench, 'databaseServer'>): DatabaseServer {
  if (databaseServer === undefined) throw new Error('it needs --database')
  return databaseServer
}

/** Pins a server that the benchmark started, and all later connections to it, to these cores. */
export const allowCores = ({ pid }: DatabaseServer, cores: string) =>
  Bun.spawnSync(['taskset', '--pid', '--cpu-list', cores, String(pid)])

/** Makes a database with one user. The service creates the schema. */
export async function seedDatabase(
  workspace: Workspace,
  server: DatabaseServer,
  plants: number,
): Promise<DatabaseSeed> {
  const url = await createDatabase(server, 'template0')
  const token = await createTokenIn(url, 'user 1')
  await administer(url, async (sql) => {
    await sql.unsafe(
      `insert into plantstore.plants (user_id, id, name, tag)
       select users.id, number, 'Monstera deliciosa ' || number, 'evergreen'
       from plantstore.users, generate_series(1, ${plants}) as number`,
    )
    await sql.unsafe('vacuum analyze').simple()
  })
  const tokensFile = workspace.file(`${crypto.randomUUID()}.tokens`)
  writeFileSync(tokensFile, `${token}\n`)
  const name = new URL(url).pathname.slice(1)
  return { url, token, tokensFile, copy: () => createDatabase(server, name) }
}

/** The number of plants in a database. */
export const countStoredPlants = (url: string): Promise<number> =>
  administer(url, async (sql) => Number((await sql.unsafe('select count(*) from plantstore.plants').values())[0]?.[0]))

async function createDatabase({ url }: DatabaseServer, template: string): Promise<string> {
  const name = `bench_${crypto.randomUUID().replaceAll('-', '')}`
  await administer(url, (sql) => sql.unsafe(`create database ${name} template ${template}`).simple())
  return urlOf(url, name)
}

/** The CPU time of a process and its children, ended children included. */
function familyCpuMs(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
  return children.reduce((sum, child) => sum + childCpuMs(Number(child)), cpuMs(pid, { withEnded: true }))
}

function childCpuMs(pid: number): number {
  try {
    return cpuMs(pid)
  } catch (error) {
    // The process has just ended. Its parent counts its time.
    if (error instanceof Error && 'code' in error && /^(?:ENOENT|ESRCH)$/.test(String(error.code))) return 0
    throw error
  }
}
