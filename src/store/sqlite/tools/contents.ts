import type { Database, Statement } from 'bun:sqlite'
import { type OwnedPlant, PLANT_FIELDS, type PlantValues, plantOf } from '../../../domain/plant.ts'
import type { FileTools } from '../../engine.ts'
import {
  BATCH_ROWS,
  BATCH_TEXT_LENGTH,
  COLUMNS,
  type Contents,
  type Counts,
  KEYS,
  type Row,
  type Source,
  TABLES,
  type Table,
} from '../../tools/contents.ts'
import { openReader, rowsOf } from '../driver.ts'
import { toAppError } from '../errors.ts'
import { lockAlone } from '../files/lock.ts'
import { openSqliteStore } from '../store.ts'
import { requireUser } from '../users.ts'

/** Updates the schema of a database. Refuses every database that a server would refuse. */
export async function updateSchema(path: string): Promise<void> {
  const store = await openSqliteStore(path, () => {}, { mustExist: true })
  await store.close()
}

/** `CopyTools.read` for SQLite. Without a snapshot no other process can open the database meanwhile. */
export async function readSqlite<T>(path: string, isSnapshot: boolean, use: (source: Source) => Promise<T>) {
  await updateSchema(path)
  using db = isSnapshot ? openReader(path) : lockAlone(path, 'end it, or use --snapshot')
  return await use(contentsOf(db, path))
}

/** Begins to read all rows as of now. The connection sees no later change. It must read integers as bigints. */
export function contentsOf(db: Database, path: string): Contents {
  try {
    db.run('begin')
    const lastIds = new Map(rowsOf<[string, bigint]>(db.prepare('select name, seq from sqlite_sequence').values()))
    return {
      counts: countRows(db),
      lastIds: { userId: lastIds.get('users') ?? 0n, tokenId: lastIds.get('tokens') ?? 0n },
      batches: (table) => readTable(db, table, path),
    }
  } catch (error) {
    throw toReadError(error, path)
  }
}

/** The number of rows of each table, in this or an attached database. */
export function countRows(db: Database, schema: 'main' | 'source' = 'main'): Counts {
  const counts = TABLES.map((table) => `(select count(*) from ${schema}.${table})`)
  const [[users, tokens, plants] = []] = db.prepare(`select ${counts.join(', ')}`).values()
  return { users: Number(users), tokens: Number(tokens), plants: Number(plants) }
}

async function* readTable(db: Database, table: Table, path: string) {
  try {
    yield* readBatches(db.prepare(selectAll(table)))
  } catch (error) {
    throw toReadError(error, path)
  }
}

const toReadError = (error: unknown, path: string) => toAppError(error, path)

const selectAll = (table: Table): string =>
  `select ${Object.keys(COLUMNS[table]).join(', ')} from ${table} order by ${KEYS[table].join(', ')}`

/** The table `users` has a column `name`, too. */
const FIELDS = PLANT_FIELDS.map((field) => `plants.${field}`).join(', ')

/** See `FileTools.exportPlants`. */
export async function exportPlants(
  path: string,
  userName: string | undefined,
  use: Parameters<FileTools['exportPlants']>[1],
): Promise<void> {
  await updateSchema(path)
  try {
    using reader = openReader(path)
    reader.run('begin')
    const condition = userName === undefined ? '' : `where users.id = ${requireUser(reader, userName)}`
    const [[plants] = []] = reader
      .prepare(`select count(*) from plants join users on users.id = plants.user_id ${condition}`)
      .values()
    const select = reader.prepare(
      `select users.name as user, plants.id, ${FIELDS} from users cross join plants on plants.user_id = users.id
       ${condition} order by users.name, plants.id`,
    )
    await use(
      readBatches(select).map((rows) => rows.map(toOwnedPlant)),
      Number(plants),
    )
  } catch (error) {
    throw toReadError(error, path)
  }
}

function toOwnedPlant(row: Row): OwnedPlant {
  // These are the columns that the statement selects.
  const [user, id, ...values] = row as readonly [string, bigint, ...PlantValues]
  return { user, id, plant: plantOf(values) }
}

/** Reads the rows of a statement in batches. */
function* readBatches(select: Statement<unknown, []>): Generator<readonly Row[]> {
  let batch: Row[] = []
  let length = 0
  for (const object of select.iterate()) {
    // The driver iterates over objects only. Their values have the order and the types of the columns.
    const row = Object.values(object as Record<string, Row[number]>)
    batch.push(row)
    for (const value of row) if (typeof value === 'string') length += value.length
    if (batch.length < BATCH_ROWS && length < BATCH_TEXT_LENGTH) continue
    yield batch
    batch = []
    length = 0
  }
  if (batch.length > 0) yield batch
}
