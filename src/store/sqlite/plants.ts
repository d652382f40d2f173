import { AppError } from '../../domain/error.ts'
import { INT64_MAX, INT64_MIN } from '../../domain/int64.ts'
import { PAGE_TEXT_LENGTH, type Store, type StoredPlant, textLength } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import type { Connections } from './connections.ts'
import { sqliteCode } from './errors.ts'

interface PlantRow {
  readonly id: bigint
  readonly name: string
  readonly tag: string | null
}

/** Plants in SQLite. */
export function plants({ reader, writer, read, write }: Connections): PlantMethods {
  const insert = writer.prepare<unknown, [UserId, bigint, string, string | null]>(
    'insert into plants (user_id, id, name, tag) values (?1, ?2, ?3, ?4)',
  )
  const select = reader.prepare<PlantRow, [UserId, bigint, number]>(
    'select id, name, tag from plants where user_id = ?1 and id >= ?2 order by id limit ?3',
  )
  const deleteOne = writer.prepare<unknown, [UserId, bigint]>('delete from plants where user_id = ?1 and id = ?2')

  return {
    createPlant: (user, plant) =>
      write(() => {
        try {
          insert.run(user, plant.id, plant.name, plant.tag ?? null)
        } catch (error) {
          throw translateConflict(error)
        }
      }, textLength(plant)),

    listPlants: (user, { after, limit }) =>
      read(() => {
        if (after === INT64_MAX) return []
        const first = after === undefined ? INT64_MIN : after + 1n
        return takePage(select.iterate(user, first, limit))
      }),

    deletePlant: (user, id) =>
      write(() => {
        if (deleteOne.run(user, id).changes === 0) throw new AppError('plant_not_found')
      }),
  }
}

/** The part of the store that this file is. */
export type PlantMethods = Pick<Store, 'createPlant' | 'listPlants' | 'deletePlant'>

/** Ends a page early where its plants are large. */
function takePage(rows: Iterable<PlantRow>): readonly StoredPlant[] {
  const page: StoredPlant[] = []
  let length = 0
  for (const { id, name, tag } of rows) {
    const plant = tag === null ? { id, name } : { id, name, tag }
    page.push(plant)
    length += textLength(plant)
    if (length >= PAGE_TEXT_LENGTH) break
  }
  return page
}

function translateConflict(error: unknown): unknown {
  const code = sqliteCode(error)
  if (code === 'SQLITE_CONSTRAINT_PRIMARYKEY') return new AppError('plant_exists', { cause: error })
  // The user was deleted after the token was checked.
  if (code === 'SQLITE_CONSTRAINT_FOREIGNKEY') return new AppError('token_invalid', { cause: error })
  return error
}
