import { existsSync, readFileSync } from 'node:fs'
import { isPostgresUrl } from '../../src/domain/database-url.ts'
import { openReader } from '../../src/store/sqlite/connection.ts'
import { administer } from './postgres.ts'

interface PlantRow {
  readonly user_id: bigint
  readonly id: bigint
  readonly name: string
  readonly tag: string | null
}

/** The plants in a database by id, read by a connection of their own. */
export async function storedPlants(database: string): Promise<readonly PlantRow[]> {
  if (isPostgresUrl(database)) {
    return administer(database, async (sql) => [
      ...(await sql.unsafe<PlantRow[]>('select user_id, id, name, tag from plantstore.plants order by id')),
    ])
  }
  using db = openReader(database)
  return db.query<PlantRow, []>('select * from plants order by id').all()
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
