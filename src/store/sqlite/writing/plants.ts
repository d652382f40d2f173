import type { Database } from 'bun:sqlite'
import { AppError, codeOf } from '../../../domain/error.ts'
import type { PlantValues } from '../../../domain/plant.ts'
import { NOBODY, type UserId } from '../../../domain/token.ts'
import { PLANT_COLUMNS } from '../../tables.ts'
import { insertInto } from '../driver.ts'
import { findUser, requireUser } from '../lookups.ts'
import type { PlantQuota } from './quota.ts'
import { insertUser } from './users.ts'

/** The values of `PLANT_COLUMNS`. */
type PlantParameters = [user: UserId, id: bigint, ...values: PlantValues]

/** The writes of plants: `createPlant` and `deletePlant` of the store's contract. An id is a decimal text. */
export function plantWrites(writer: Database, quota?: PlantQuota) {
  const insert = writer.prepare<unknown, PlantParameters>(
    `${insertInto('plants', PLANT_COLUMNS)} on conflict do nothing`,
  )
  const selectId = writer.prepare<unknown, [UserId, bigint]>('select id from plants where user_id = ?1 and id = ?2')
  const deleteOne = writer.prepare<unknown, [UserId, bigint]>('delete from plants where user_id = ?1 and id = ?2')
  const deleteSame = writer.prepare<unknown, PlantParameters>(
    `delete from plants where ${PLANT_COLUMNS.map((column) => `${column} is ?`).join(' and ')}`,
  )

  const createPlant = (user: UserId, idText: string, ...values: PlantValues): void => {
    const id = BigInt(idText)
    // If the plant exists, the insert finds it, and that is the reason to tell.
    if (quota?.isUsedUp(user) && selectId.get(user, id) === null) throw new AppError('quota_exceeded')
    try {
      if (insert.run(user, id, ...values).changes === 0) throw new AppError('plant_exists')
    } catch (error) {
      // The user was deleted after the token was checked.
      if (codeOf(error) === 'SQLITE_CONSTRAINT_FOREIGNKEY') throw new AppError('token_invalid', { cause: error })
      throw error
    }
    quota?.record(user, 1)
  }

  return {
    createPlant,
    createFirstPlant(name: string, createdAtMs: number, idText: string, ...values: PlantValues): void {
      const user = findUser(writer, name)
      if (user?.blockedAtMs !== undefined) throw new AppError('token_invalid')
      // Before the user is there, so that a refusal stores nothing.
      if (user === undefined && quota?.isUsedUp(NOBODY)) throw new AppError('quota_exceeded')
      insertUser(writer, name, createdAtMs)
      createPlant(requireUser(writer, name), idText, ...values)
    },
    /** With values it deletes the plant only while it has them. */
    deletePlant(user: UserId, idText: string, ...values: PlantValues | readonly []): void {
      const id = BigInt(idText)
      const { changes } = values.length === 0 ? deleteOne.run(user, id) : deleteSame.run(user, id, ...values)
      if (changes === 0) throw new AppError('plant_not_found')
      quota?.record(user, -1)
    },
  }
}
