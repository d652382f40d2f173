import type { Database } from 'bun:sqlite'
import { assignValues, PLANT_FIELDS, type PlantValues } from '../../../domain/plant.ts'
import type { OwnedPlant } from '../../../domain/transfer.ts'
import type { Row } from '../../tools/contents.ts'
import { openReader } from '../connection.ts'
import { toAppError } from '../errors.ts'
import { requireUser } from '../users.ts'
import { readBatches } from './contents.ts'

/** The table `users` has a column `name`, too. */
const FIELDS = PLANT_FIELDS.map((field) => `plants.${field}`).join(', ')

/** Begins to read all plants, or the plants of a user, by user name and id, as of now. Throws `user_not_found`. `dispose` ends it. */
export function exportPlants(path: string, userName: string | undefined) {
  const reader = openReader(path)
  try {
    return { ...readPlants(reader, userName, path), [Symbol.dispose]: () => reader.close(true) }
  } catch (error) {
    reader.close(true)
    throw toAppError(error, { duringWrite: false, path })
  }
}

function readPlants(reader: Database, userName: string | undefined, path: string) {
  reader.run('begin')
  const condition = userName === undefined ? '' : `where users.id = ${requireUser(reader, userName)}`
  const [[plants] = []] = reader
    .prepare(`select count(*) from plants join users on users.id = plants.user_id ${condition}`)
    .values()
  const select = reader.prepare(
    `select users.name as user, plants.id, ${FIELDS} from users cross join plants on plants.user_id = users.id
     ${condition} order by users.name, plants.id`,
  )
  async function* batches() {
    try {
      for (const rows of readBatches(select)) yield rows.map(toOwnedPlant)
    } catch (error) {
      throw toAppError(error, { duringWrite: false, path })
    }
  }
  return { plants: Number(plants), batches: batches() }
}

function toOwnedPlant(row: Row): OwnedPlant {
  // These are the columns that the statement selects.
  const [user, id, ...values] = row as readonly [string, bigint, ...PlantValues]
  return assignValues({ user, id }, values)
}
