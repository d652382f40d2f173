import { INT64_MAX, INT64_MIN } from '../../domain/int64.ts'
import { type PlantRow, type StoredPlant, toPlant, valuesOf } from '../../domain/plant.ts'
import { EMPTY_PAGE, PAGE_TEXT_LENGTH, type Plants } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import { AppError } from '../../error.ts'
import { deleteIf, writeIf } from '../preconditions.ts'
import { takePage } from '../rows.ts'
import { FIELD_COLUMNS } from '../tables.ts'
import type { Connections } from './connections.ts'
import { selectPart } from './tables.ts'

const SELECT_ONE = `select ${FIELD_COLUMNS} from plantstore.plants where user_id = $1 and id = $2`
const IN_RANGE = 'user_id = $1 and id >= $2 order by id limit $3'
const NAMES = `id, ${FIELD_COLUMNS}`
/** Up to this many plants the simpler statement reads a list. It is faster, and so many plants fit in memory. */
const SHORT_LIST_PLANTS = 32
/** The planner takes any limit for a tenth of the rows. The inner one keeps this small, so that PostgreSQL keeps the plan. */
const SELECT = `select ${NAMES} from (select ${NAMES} from plantstore.plants where user_id = $1 and id >= $2
  order by id limit ${SHORT_LIST_PLANTS + 1}) as first order by id limit $3`
/** A UTF-16 code unit takes at most 3 bytes of UTF-8: a page ends before it has more bytes. */
const PAGE_TEXT_BYTES = 3 * PAGE_TEXT_LENGTH
/** The same up to the plant behind so much text, which tells that the page is not the last one. */
const SELECT_PAGE = selectPart('plants', 'id', IN_RANGE, PAGE_TEXT_BYTES, { names: NAMES, rowsAfter: 1 })

export function plants({ read, writePlant }: Connections) {
  const getPlant = async (user: UserId, id: bigint) => {
    const [row] = await read<PlantRow>(SELECT_ONE, [user, id])
    if (row === undefined) throw new AppError('plant_not_found')
    return toPlant(row)
  }
  return {
    async createPlant(user, plant) {
      await writePlant({ kind: 'create', user, id: plant.id, values: valuesOf(plant), expected: 'none' })
    },

    async listPlants(user, { after, limit }) {
      if (after === INT64_MAX) return EMPTY_PAGE
      const first = after === undefined ? INT64_MIN : after + 1n
      const select = limit <= SHORT_LIST_PLANTS ? SELECT : SELECT_PAGE
      const rows = await read<PlantRow & Pick<StoredPlant, 'id'>>(select, [user, first, limit + 1])
      return takePage(rows, limit, toPlant)
    },

    getPlant,

    deletePlant: (user, id, condition) =>
      deleteIf(
        condition,
        () => getPlant(user, id),
        async (expected) => void (await writePlant({ kind: 'delete', user, id, expected })),
      ),

    putPlant: (user, plant, condition) =>
      writeIf(
        condition,
        () => getPlant(user, plant.id),
        (expected) => writePlant({ kind: 'put', user, id: plant.id, values: valuesOf(plant), expected }),
      ),

    // Other processes change plants unnoticed. So there is no version, and lists are not cached.
    plantsVersion: () => undefined,
    isUnchangedUpTo: () => false,
  } satisfies Plants
}
