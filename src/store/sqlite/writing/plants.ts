import type { Database, SQLQueryBindings } from 'bun:sqlite'
import { PLANT_FIELDS, type PlantValues } from '../../../domain/plant.ts'
import type { UserId } from '../../../domain/token.ts'
import { insertInto } from '../../../engine/sqlite/driver.ts'
import { AppError, codeOf } from '../../../error.ts'
import type { Expected } from '../../preconditions.ts'
import { PLANT_COLUMNS } from '../../tables.ts'
import type { PlantQuota } from './quota.ts'

/** The values of `PLANT_COLUMNS`. */
type PlantParameters = [user: UserId, id: bigint, ...values: PlantValues]

const IS_SAME = PLANT_COLUMNS.map((column) => `${column} is ?`).join(' and ')
const REPLACE = `update plants set ${PLANT_FIELDS.map((field) => `${field} = ?`).join(', ')} where`

/** A put changes no list that ends before its plant, made or replaced. A delete may make such a list the last. */
export const PLANT_CHANGES = { createPlant: 'lists from id', putPlant: 'lists from id', deletePlant: 'lists' } as const

/** The writes of plants of the store's contract. An id is a decimal text. */
export function plantWrites(writer: Database, quota?: PlantQuota) {
  const insert = writer.prepare<unknown, PlantParameters>(
    `${insertInto('plants', PLANT_COLUMNS)} on conflict do nothing`,
  )
  const selectId = writer.prepare<unknown, [UserId, bigint]>('select id from plants where user_id = ?1 and id = ?2')
  const deleteOne = writer.prepare<unknown, [UserId, bigint]>('delete from plants where user_id = ?1 and id = ?2')
  const deleteSame = writer.prepare<unknown, PlantParameters>(`delete from plants where ${IS_SAME}`)
  const replaceOne = writer.prepare<unknown, SQLQueryBindings[]>(`${REPLACE} user_id = ? and id = ?`)
  const replaceSame = writer.prepare<unknown, SQLQueryBindings[]>(`${REPLACE} ${IS_SAME}`)

  /** Whether the last put replaced a plant. If not, the next one tries first to make its plant, which saves a statement. */
  let hasReplaced = true

  const createPlant = (user: UserId, idText: string, ...values: PlantValues): void => {
    const id = BigInt(idText)
    // If the plant exists, the insert finds it, and that is the reason to tell.
    if (quota?.isUsedUp(user) && selectId.get(user, id) === null) throw new AppError('quota_exceeded')
    try {
      if (insert.run(user, id, ...values).changes === 0) throw new AppError('plant_exists')
    } catch (error) {
      throw refusalOf(error)
    }
    quota?.record(user, 1)
  }

  /** Returns true if it made the plant, and nothing if it replaced one. */
  const putPlant = (user: UserId, idText: string, values: PlantValues, expected: Expected): true | undefined => {
    const id = BigInt(idText)
    // A quota first has to know whether the plant exists.
    try {
      if (!hasReplaced && expected === 'any' && quota === undefined && insert.run(user, id, ...values).changes > 0)
        return true
    } catch (error) {
      throw refusalOf(error)
    }
    if (expected !== 'none') {
      const [replace, same] = typeof expected === 'string' ? [replaceOne, []] : [replaceSame, expected]
      hasReplaced = replace.run(...values, user, id, ...same).changes > 0
      if (hasReplaced) return undefined
    }
    if (expected === 'none' ? selectId.get(user, id) !== null : expected !== 'any')
      throw new AppError('precondition_failed')
    createPlant(user, idText, ...values)
    return true
  }

  return {
    createPlant,
    putPlant,
    deletePlant(user: UserId, idText: string, expected: 'any' | PlantValues = 'any'): void {
      const id = BigInt(idText)
      const { changes } = expected === 'any' ? deleteOne.run(user, id) : deleteSame.run(user, id, ...expected)
      if (changes === 0) throw new AppError('plant_not_found')
      quota?.record(user, -1)
    },
  }
}

/** Why an insert was refused. There may be no such user: not yet, or no more. */
const refusalOf = (cause: unknown): unknown =>
  codeOf(cause) === 'SQLITE_CONSTRAINT_FOREIGNKEY' ? new AppError('token_invalid', { cause }) : cause
