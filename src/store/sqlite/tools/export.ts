import type { Database } from 'bun:sqlite'
import type { Export, OwnedPlant } from '../../../domain/transfer.ts'
import { toAppError } from '../errors.ts'
import { requireUser } from '../users.ts'

/** Plants of one batch, and the length of their text at which it ends before. */
const BATCH_PLANTS = 2000
const BATCH_TEXT_LENGTH = 256 * 1024

interface Row {
  readonly user: string
  readonly id: bigint
  readonly name: string
  readonly tag: string | null
}

/** Begins to read all plants, or those of a user: what is written from now on is not among them. */
export function exportFrom(reader: Database, userName: string | undefined, path: string): Export {
  reader.run('begin')
  const user = userName === undefined ? undefined : requireUser(reader, userName)
  const condition = user === undefined ? '' : `where users.id = ${user}`
  const [[plants] = []] = reader
    .prepare(`select count(*) from plants join users on users.id = plants.user_id ${condition}`)
    .values()
  const select = reader.prepare<Row, []>(
    `select users.name as user, plants.id, plants.name, tag from users cross join plants on plants.user_id = users.id
     ${condition} order by users.name, plants.id`,
  )
  return { plants: Number(plants), batches: batchesOf(select.iterate(), path) }
}

async function* batchesOf(rows: Iterable<Row>, path: string): AsyncGenerator<readonly OwnedPlant[]> {
  let batch: OwnedPlant[] = []
  let length = 0
  try {
    for (const { user, id, name, tag } of rows) {
      batch.push(tag === null ? { user, id, name } : { user, id, name, tag })
      length += name.length + (tag?.length ?? 0)
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
