import { INT64_MAX, INT64_MIN } from '../../domain/int64.ts'
import { type PlantRow, type StoredPlant, toPlant, valuesOf } from '../../domain/plant.ts'
import { EMPTY_PAGE, type Plants } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import type { Connections } from '../../engine/sqlite/connections.ts'
import { AppError } from '../../error.ts'
import { deleteIf, writeIf } from '../preconditions.ts'
import { takePage } from '../rows.ts'
import { FIELD_COLUMNS } from '../tables.ts'
import type { Writes } from './writing/writes.ts'

export function plants({ reader, read, writer: { write }, versions }: Connections<Writes>) {
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

    createPlant: (user, plant) => write(['createPlant', user, `${plant.id}`, ...valuesOf(plant)]),

    listPlants: (user, { after, limit }) =>
      read(() => {
        if (after === INT64_MAX) return EMPTY_PAGE
        const first = after === undefined ? INT64_MIN : after + 1n
        return takePage(select.iterate(user, first, limit + 1), limit, toPlant)
      }),

    putPlant: (user, plant, condition) =>
      writeIf(
        condition,
        () => getPlant(user, plant.id),
        async (expected) => (await write(['putPlant', user, `${plant.id}`, valuesOf(plant), expected])) === true,
      ),

    deletePlant: (user, id, condition) =>
      deleteIf(
        condition,
        () => getPlant(user, id),
        (expected) => write(['deletePlant', user, `${id}`, expected]),
      ),

    plantsVersion: versions.owner,
    isUnchangedUpTo: versions.isUnchangedUpTo,
  } satisfies Plants
}
