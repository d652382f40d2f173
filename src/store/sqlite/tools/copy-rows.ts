import type { Database } from 'bun:sqlite'
import { nextTurn } from '../../../domain/next-turn.ts'
import type { FileRole } from '../../errors.ts'
import type { CopyOptions, Counts } from '../../file-tools.ts'
import { rowsOf } from '../connection.ts'
import { BACKUP_OF, recordPath } from '../files/backup-record.ts'
import { databaseEmpty } from '../files/preflight.ts'
import { type ForeignObject, refuseChangedSchema } from '../files/schema.ts'
import { APPLICATION_ID, pragmaNumber } from '../migrate.ts'

/** Copying so many rows takes a few milliseconds. After each batch, signals are handled. */
const BATCH_ROWS = 20_000

type SchemaRow = [type: string, name: string, sql: string]

/**
 * Copies the schema and all rows of the attached database `source` in one transaction. A backup may come from anybody, so the
 * objects of other programs in it are dropped. Returns the counts of the source, and the dropped objects.
 */
export async function copyRows(
  copy: Database,
  role: FileRole,
  source: string,
  { onProgress = () => {}, signal }: CopyOptions,
): Promise<{ readonly expected: Counts; readonly dropped: readonly ForeignObject[] }> {
  copy.run('begin')
  if (pragmaNumber(copy, 'application_id', 'source') !== APPLICATION_ID) throw databaseEmpty(source)
  const foreign = refuseChangedSchema(role, source, copy, pragmaNumber(copy, 'user_version', 'source'), 'source')
  const dropped = role === 'backup' ? foreign : []
  const schema = schemaToCopy(copy, new Set(dropped.map(({ name }) => name)))
  const tables = schema.filter(([type]) => type === 'table')
  for (const pragma of ['application_id', 'user_version'] as const) {
    copy.run(`pragma main.${pragma} = ${pragmaNumber(copy, pragma, 'source')}`)
  }
  // `prepare` takes only the first statement of a text. `run` would execute all of them.
  for (const [, , sql] of tables) copy.prepare(sql).run()
  const expected = countRows(copy, 'source')
  let plants = 0
  for (const [, table] of tables) {
    for (const rows of copyTable(copy, table)) {
      signal?.throwIfAborted()
      if (table === 'plants') {
        plants += rows
        onProgress(plants, expected.plants)
      }
      await nextTurn()
    }
  }
  copyInternalTables(copy)
  // SQLite makes an index faster, and denser, once the rows are there.
  for (const [type, , sql] of schema) if (type !== 'table') copy.prepare(sql).run()
  if (role === 'database') recordPath(copy, source)
  copy.run('commit')
  return { expected, dropped }
}

const schemaToCopy = (copy: Database, dropped: ReadonlySet<string>): readonly SchemaRow[] =>
  rowsOf<SchemaRow>(
    copy.prepare('select type, name, sql from source.sqlite_schema where sql is not null order by rowid').values(),
  ).filter(([, name]) => !name.startsWith('sqlite_') && name !== BACKUP_OF && !dropped.has(name))

/** Copies what SQLite keeps for itself: the statistics of `analyze`, and the last identifiers, which are never used again. */
function copyInternalTables(copy: Database): void {
  if (copy.prepare(`select 1 from source.sqlite_schema where name = 'sqlite_stat1'`).values().length > 0) {
    // Only SQLite can make this table.
    copy.run('analyze main.sqlite_schema')
    copy.run('insert into main.sqlite_stat1 select tbl, idx, stat from source.sqlite_stat1')
  }
  copy.run('delete from main.sqlite_sequence')
  copy.run('insert into main.sqlite_sequence select * from source.sqlite_sequence')
}

/** Copies the rows of a table in batches by its primary key. Yields the size of each batch. */
function* copyTable(copy: Database, table: string): Generator<number> {
  const key = copy
    .prepare(`select name from pragma_table_info(?1, 'main') where pk > 0 order by pk`)
    .values(table)
    .flatMap(([name]) => quoted(String(name)))
  const insert = `insert into main.${quoted(table)} select * from source.${quoted(table)}`
  if (key.length === 0) {
    yield copy.run(insert).changes
    return
  }
  const columns = key.join(', ')
  const batch = `order by ${columns} limit ${BATCH_ROWS}`
  const first = copy.run(`${insert} ${batch}`).changes
  yield first
  if (first < BATCH_ROWS) return
  const last = key.map((name) => `${name} desc`).join(', ')
  const next = copy.prepare(`${insert}
    where (${columns}) > (select ${columns} from main.${quoted(table)} order by ${last} limit 1) ${batch}`)
  for (;;) {
    const { changes } = next.run()
    yield changes
    if (changes < BATCH_ROWS) return
  }
}

export function countRows(db: Database, schema: 'main' | 'source'): Counts {
  const [counts] = db
    .prepare<Counts, []>(
      `select (select count(*) from ${schema}.users) as users, (select count(*) from ${schema}.tokens) as tokens,
         (select count(*) from ${schema}.plants) as plants`,
    )
    .all()
  return counts ?? { users: 0, tokens: 0, plants: 0 }
}

/** Any name as an identifier in SQL. */
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
