import { AppError } from '../../domain/error.ts'
import { INT64_MAX, INT64_MIN } from '../../domain/int64.ts'
import type { Store, StoredPlant } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import type { Connections } from './connections.ts'
import { sqliteCode } from './errors.ts'

type PlantRow = [id: bigint, name: string, tag: string | null]

/** Plants in SQLite. */
export function plants({ reader, writer, read, write }: Connections): PlantMethods {
  const insert = writer.prepare<unknown, [UserId, bigint, string, string | null]>(
    'insert into plants (user_id, id, name, tag) values (?1, ?2, ?3, ?4)',
  )
  const select = reader.prepare<unknown, [UserId, bigint, number]>(
    'select id, name, tag from plants where user_id = ?1 and id >= ?2 order by id limit ?3',
  )
  const remove = writer.prepare<unknown, [UserId, bigint]>('delete from plants where user_id = ?1 and id = ?2')

  return {
    createPlant: (user, { id, name, tag }) =>
      write(
        () => {
          try {
            insert.run(user, id, name, tag ?? null)
          } catch (error) {
            throw translateConflict(error)
          }
        },
        name.length + (tag?.length ?? 0),
      ),

    listPlants: (user, { after, limit }) =>
      read(() => {
        if (after === INT64_MAX) return []
        const first = after === undefined ? INT64_MIN : after + 1n
        // The columns and the strict table give the rows this shape.
        return (select.values(user, first, limit) as PlantRow[]).map(toStoredPlant)
      }),

    deletePlant: (user, id) =>
      write(() => {
        if (remove.run(user, id).changes === 0) throw new AppError('plant_not_found')
      }),
  }
}

export type PlantMethods = Pick<Store, 'createPlant' | 'listPlants' | 'deletePlant'>

const toStoredPlant = ([id, name, tag]: PlantRow): StoredPlant => (tag === null ? { id, name } : { id, name, tag })

function translateConflict(error: unknown): unknown {
  const code = sqliteCode(error)
  if (code === 'SQLITE_CONSTRAINT_PRIMARYKEY') return new AppError('plant_exists', { cause: error })
  // The user was deleted after the token was checked.
  if (code === 'SQLITE_CONSTRAINT_FOREIGNKEY') return new AppError('token_invalid', { cause: error })
  return error
}
