// Tested in test/store/copy.test.ts.
import type { Database, Statement } from 'bun:sqlite'
import { type OwnedPlant, PLANT_FIELDS, type PlantRow, toPlant } from '../../../domain/plant.ts'
import { fileDamaged } from '../../../engine/errors.ts'
import { rowsOf } from '../../../engine/sqlite/driver.ts'
import { toEngineError } from '../../../engine/sqlite/errors.ts'
import { damageFound, findDamage } from '../../../engine/sqlite/files/damage-mark.ts'
import type { FileTools, OpenOptions } from '../../database.ts'
import { COLUMNS, KEYS } from '../../tables.ts'
import { BATCH, type Contents, type Row } from '../../tools/contents.ts'
import { PLANT_FORMAT } from '../format.ts'
import { requireUser } from '../lookups.ts'
import { openSqliteStore } from '../store.ts'

/** Refuses every database that a server would refuse, and an older schema, or raises that with `onRaised`. */
export async function requireSchema(path: string, onRaised?: OpenOptions['onRaised']): Promise<void> {
  const store = await openSqliteStore(path, () => {}, { mustExist: true, onRaised })
  await store.close()
}

/** Begins to read all rows as of now. The connection sees no later change. It must read integers as bigints. */
export function contentsOf(db: Database, path: string): Contents {
  db.run('begin')
  const lastIds = new Map(rowsOf<[string, bigint]>(db, 'select name, seq from sqlite_sequence'))
  return {
    counts: PLANT_FORMAT.countRows(db, 'main'),
    lastIds: { userId: lastIds.get('users') ?? 0n, tokenId: lastIds.get('tokens') ?? 0n },
    async *batches(table) {
      const columns = Object.keys(COLUMNS[table]).join(', ')
      try {
        const select = db.prepare<Readonly<Record<string, Row[number]>>, []>(
          `select ${columns} from ${table} order by ${KEYS[table].join(', ')}`,
        )
        for (const rows of readBatches(select)) yield rows.map((row) => Object.values(row))
      } catch (error) {
        // Here, because the target of a copy would take the error for one of its own file.
        throw toEngineError(error, path)
      }
    },
  }
}

/** A damaged page may have values of other types, which would not become JSON. The table `users` has a column `name`, too. */
const FIELDS = PLANT_FIELDS.map((field) => `cast(plants.${field} as text) as ${field}`).join(', ')

/** See `FileTools.exportPlants`. */
export const exportPlants =
  (reader: Database, path: string): FileTools['exportPlants'] =>
  async (userName, use) => {
    reader.run('begin')
    const condition = userName === undefined ? '' : `where plants.user_id = ${requireUser(reader, userName)}`
    const plants = Number(rowsOf(reader, `select count(*) from plants ${condition}`)[0]?.[0])
    let read = 0
    const select = reader.prepare<Omit<OwnedPlant, 'plant'> & PlantRow, []>(
      `select cast(users.name as text) as user, plants.id, ${FIELDS} from users cross join plants on plants.user_id = users.id
       ${condition} order by users.name, plants.id`,
    )
    const batches = readBatches(select).map((rows) => {
      read += rows.length
      return rows.map((row) => ({ user: row.user, id: row.id, plant: toPlant(row) }))
    })
    await use(batches, plants)
    // A page may have lost rows, which nobody counts.
    const damage = findDamage(reader)
    if (damage !== '') throw damageFound('database', path, `${damage}, so plants may be missing`)
    if (read < plants) throw fileDamaged('database', path, `has ${plants - read} plants that belong to no user`)
  }

function* readBatches<R extends object>(select: Statement<R, []>): Generator<readonly R[]> {
  let batch: R[] = []
  let length = 0
  for (const row of select.iterate()) {
    batch.push(row)
    for (const value of Object.values(row)) if (typeof value === 'string') length += value.length
    if (batch.length < BATCH.rows && length < BATCH.textLength) continue
    yield batch
    batch = []
    length = 0
  }
  if (batch.length > 0) yield batch
}
