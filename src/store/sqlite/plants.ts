import type { Database } from 'bun:sqlite'
import { AppError } from '../../domain/error.ts'
import { INT64_MAX, INT64_MIN } from '../../domain/int64.ts'
import { type PlantRow, type PlantValues, type StoredPlant, toPlant, valuesOf } from '../../domain/plant.ts'
import { EMPTY_PAGE, type Store } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import { deleteIf, FIELD_COLUMNS, PLANT_COLUMNS, takePage } from '../rows.ts'
import type { Connections } from './connections.ts'
import { sqliteCode } from './errors.ts'
import { insertInto } from './insert.ts'
import type { PlantQuota } from './writing/quota.ts'

/** Plants in SQLite. */
export function plants({ reader, read, write }: Connections) {
  const select = reader.prepare<PlantRow & Pick<StoredPlant, 'id'>, [UserId, bigint, number]>(
    `select id, ${FIELD_COLUMNS} from plants where user_id = ?1 and id >= ?2 order by id limit ?3`,
  )

  const selectOne = reader.prepare<PlantRow, [UserId, bigint]>(
    `select ${FIELD_COLUMNS} from plants where user_id = ?1 and id = ?2`,
  )
  const getPlant = (user: UserId, id: bigint) =>
    read(() => {
      const row = selectOne.get(user, id)
      if (row === null) throw new AppError('plant_not_found')
      return toPlant(row)
    })

  return {
    getPlant,

    createPlant: (user, plant) => write(['createPlant', user, plant.id, ...valuesOf(plant)]),

    listPlants: (user, { after, limit }) =>
      read(() => {
        if (after === INT64_MAX) return EMPTY_PAGE
        const first = after === undefined ? INT64_MIN : after + 1n
        return takePage(select.iterate(user, first, limit + 1), limit, toPlant)
      }),

    deletePlant: (user, id, condition) =>
      condition === undefined
        ? write(['deletePlant', user, id])
        : deleteIf(
            condition,
            () => getPlant(user, id),
            (values) => write(['deletePlant', user, id, ...values]),
          ),
  } satisfies Partial<Store>
}

/** The values of `PLANT_COLUMNS`. */
type PlantParameters = [user: UserId, id: bigint, ...values: PlantValues]

/** The writes of plants: `createPlant` and `deletePlant` of the store's contract. */
export function plantWrites(writer: Database, quota?: PlantQuota) {
  const insert = writer.prepare<unknown, PlantParameters>(
    `${insertInto('plants', PLANT_COLUMNS)} on conflict do nothing`,
  )
  const selectId = writer.prepare<unknown, [UserId, bigint]>('select id from plants where user_id = ?1 and id = ?2')
  const deleteOne = writer.prepare<unknown, [UserId, bigint]>('delete from plants where user_id = ?1 and id = ?2')
  const deleteSame = writer.prepare<unknown, PlantParameters>(
    `delete from plants where ${PLANT_COLUMNS.map((column) => `${column} is ?`).join(' and ')}`,
  )

  return {
    createPlant(...row: PlantParameters): void {
      const [user, id] = row
      // If the plant exists, the insert finds it, and that is the reason to tell.
      if (quota?.isUsedUp(user) && selectId.get(user, id) === null) throw new AppError('quota_exceeded')
      try {
        if (insert.run(...row).changes === 0) throw new AppError('plant_exists')
      } catch (error) {
        // The user was deleted after the token was checked.
        if (sqliteCode(error) === 'SQLITE_CONSTRAINT_FOREIGNKEY') throw new AppError('token_invalid', { cause: error })
        throw error
      }
      quota?.record(user, 1)
    },
    /** With values it deletes the plant only while it has them. */
    deletePlant(user: UserId, id: bigint, ...values: PlantValues): void {
      const { changes } = values.length === 0 ? deleteOne.run(user, id) : deleteSame.run(user, id, ...values)
      if (changes === 0) throw new AppError('plant_not_found')
      quota?.record(user, -1)
    },
  }
}
