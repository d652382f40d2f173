import { existsSync, readFileSync } from 'node:fs'
import { isPostgresUrl } from '../../src/domain/database-url.ts'
import { openReader } from '../../src/store/sqlite/driver.ts'
import { administer } from './postgres.ts'

interface PlantRow {
  readonly user_id: bigint
  readonly id: bigint
  readonly name: string
  readonly tag?: string
}

/** The plants in a database by id, read by a connection of their own. What a plant does not have is left out. */
export async function storedPlants(database: string): Promise<readonly PlantRow[]> {
  const rows = isPostgresUrl(database) ? await rowsOfPostgres(database) : rowsOfSqlite(database)
  const present = ([, value]: [string, unknown]) => value !== null
  return rows.map((row) => Object.fromEntries(Object.entries(row).filter(present)) as unknown as PlantRow)
}

const rowsOfPostgres = (database: string) =>
  administer(database, async (sql) => [...(await sql.unsafe<object[]>('select * from plantstore.plants order by id'))])

function rowsOfSqlite(database: string): object[] {
  using db = openReader(database)
  return db.query<object, []>('select * from plants order by id').all()
}

/** All that a database holds as text: its files, or its rows. */
export async function storedText(database: string): Promise<string> {
  if (isPostgresUrl(database)) {
    const tables = ['plants', 'tokens', 'users', 'writers', 'counters']
    return administer(database, async (sql) => {
      const rows = []
      for (const table of tables)
        rows.push(...(await sql.unsafe(`select t::text from plantstore.${table} as t`).values()))
      return rows.join('\n')
    })
  }
  const files = ['', '-wal'].map((suffix) => database + suffix).filter((path) => existsSync(path))
  return files.map((path) => readFileSync(path, 'latin1')).join('\n')
}
