import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { administer, startCluster, urlOf } from '../support/postgres.ts'
import { createTokenIn } from '../support/tokens.ts'
import { cpuMs } from './servers.ts'
import { SCRATCH, type Workspace } from './workspace.ts'

/** What the benchmark starts where a URL is not given. */
export const PRIVATE = 'private'

/** A PostgreSQL server on which databases can be made, and which counts statements. */
export interface DatabaseServer extends Disposable {
  readonly url: string
  /** Time that all its processes have spent on a core so far, where that can be told. */
  readonly cpuMs: (() => number) | undefined
}

/** A database on it, and who may ask for what is in it. */
export interface DatabaseSeed {
  readonly url: string
  readonly token: string
  /** A file with the token, in a line. */
  readonly tokensFile: string
  /** Makes a copy of the database. Nobody may be connected to it. */
  copy(): Promise<string>
}

/** Connects to the server of a URL, or starts one: on a real disk, with its own settings but that it counts statements. */
export async function openDatabaseServer(database: string): Promise<DatabaseServer> {
  if (database !== PRIVATE) {
    await prepareCounting(database)
    return { url: database, cpuMs: undefined, [Symbol.dispose]: () => {} }
  }
  mkdirSync(SCRATCH, { recursive: true })
  const cluster = await startCluster({ shared_preload_libraries: 'pg_stat_statements' }, { parent: SCRATCH })
  try {
    await prepareCounting(cluster.url)
    const [pid] = readFileSync(join(cluster.data, 'postmaster.pid'), 'utf8').split('\n').map(Number)
    return { url: cluster.url, cpuMs: () => familyCpuMs(pid ?? 0), [Symbol.dispose]: cluster[Symbol.dispose] }
  } catch (error) {
    cluster[Symbol.dispose]()
    throw error
  }
}

/** Lets a server of ours, and all connections to it from now on, have these cores. */
export function allowCores({ url }: DatabaseServer, cores: string): Promise<void> {
  return administer(url, async (sql) => {
    const [[path] = []] = await sql.unsafe('show data_directory').values()
    const [pid = ''] = readFileSync(join(String(path), 'postmaster.pid'), 'utf8').split('\n')
    Bun.spawnSync(['taskset', '--pid', '--cpu-list', cores, pid])
  })
}

/** Makes a database of one user by the service's own schema. */
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

/** How many plants a database holds. */
export const countStoredPlants = (url: string): Promise<number> =>
  administer(url, async (sql) => Number((await sql.unsafe('select count(*) from plantstore.plants').values())[0]?.[0]))

/** A statement, and how often it was executed. */
export interface Executed {
  readonly text: string
  readonly calls: number
}

/** Runs something and counts the statements that were executed in a database meanwhile, those most often executed first. */
export async function countStatements({ url }: DatabaseServer, database: string, work: () => Promise<void>) {
  await administer(url, (sql) => sql.unsafe('select pg_stat_statements_reset()'))
  await work()
  const name = new URL(database).pathname.slice(1)
  return administer(url, async (sql): Promise<readonly Executed[]> => {
    const rows = await sql
      .unsafe(
        `select query, sum(calls) from pg_stat_statements join pg_database on pg_database.oid = dbid
         where datname = $1 group by query order by 2 desc`,
        [name],
      )
      .values()
    return [...rows].map(([text, calls]) => ({ text: String(text).replace(/\s+/g, ' '), calls: Number(calls) }))
  })
}

async function createDatabase({ url }: DatabaseServer, template: string): Promise<string> {
  const name = `bench_${crypto.randomUUID().replaceAll('-', '')}`
  await administer(url, (sql) => sql.unsafe(`create database ${name} template ${template}`).simple())
  return urlOf(url, name)
}

const prepareCounting = (url: string): Promise<void> =>
  administer(url, async (sql) => {
    await sql.unsafe('create extension if not exists pg_stat_statements').simple()
    // Rejects, and says why, where the library is not loaded.
    await sql.unsafe('select pg_stat_statements_reset()')
  })

/** The process with its children, those that have ended included. */
function familyCpuMs(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
  return children.reduce((sum, child) => sum + childCpuMs(Number(child)), cpuMs(pid, { withEnded: true }))
}

function childCpuMs(pid: number): number {
  try {
    return cpuMs(pid)
  } catch (error) {
    // It has just ended: its parent has its time.
    if (error instanceof Error && 'code' in error && /^(?:ENOENT|ESRCH)$/.test(String(error.code))) return 0
    throw error
  }
}
