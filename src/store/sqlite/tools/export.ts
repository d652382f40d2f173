import type { Database } from 'bun:sqlite'
import { assignFields, PLANT_FIELDS, type PlantRow } from '../../../domain/plant.ts'
import { textLength } from '../../../domain/store.ts'
import type { Export, OwnedPlant } from '../../../domain/transfer.ts'
import { toAppError } from '../errors.ts'
import { requireUser } from '../users.ts'

/** Plants of one batch, and the length of their text at which it ends before. */
const BATCH_PLANTS = 2000
const BATCH_TEXT_LENGTH = 256 * 1024

type Row = PlantRow & { readonly user: string; readonly id: bigint }

/** The other table has a name, too. */
const FIELDS = PLANT_FIELDS.map((field) => `plants.${field}`).join(', ')

/** Begins to read all plants, or those of a user: what is written from now on is not among them. */
export function exportFrom(reader: Database, userName: string | undefined, path: string): Export {
  reader.run('begin')
  const user = userName === undefined ? undefined : requireUser(reader, userName)
  const condition = user === undefined ? '' : `where users.id = ${user}`
  const [[plants] = []] = reader
    .prepare(`select count(*) from plants join users on users.id = plants.user_id ${condition}`)
    .values()
  const select = reader.prepare<Row, []>(
    `select users.name as user, plants.id, ${FIELDS} from users cross join plants on plants.user_id = users.id
     ${condition} order by users.name, plants.id`,
  )
  return { plants: Number(plants), batches: batchesOf(select.iterate(), path) }
}

async function* batchesOf(rows: Iterable<Row>, path: string): AsyncGenerator<readonly OwnedPlant[]> {
  let batch: OwnedPlant[] = []
  let length = 0
  try {
    for (const row of rows) {
      const plant = assignFields({ user: row.user, id: row.id }, row)
      batch.push(plant)
      length += textLength(plant)
      if (batch.length < BATCH_PLANTS && length < BATCH_TEXT_LENGTH) continue
      yield batch
      batch = []
      length = 0
    }
  } catch (error) {
    throw toAppError(error, { duringWrite: false, path })
  }
  if (batch.length > 0) yield batch
}
