import { AppError } from '../../domain/error.ts'
import { INT64_MAX, INT64_MIN } from '../../domain/int64.ts'
import { PLANT_FIELDS, type PlantRow, type StoredPlant, toPlant, valuesOf } from '../../domain/plant.ts'
import { EMPTY_PAGE, PAGE_TEXT_LENGTH, type Store } from '../../domain/store.ts'
import type { UserId } from '../../domain/token.ts'
import { deleteIf, FIELD_COLUMNS, takePage } from '../rows.ts'
import type { Connections } from './connections.ts'

/** The length of a plant's text in bytes. PostgreSQL knows it without reading the text. */
const PLANT_TEXT_BYTES = PLANT_FIELDS.map((field) => `coalesce(octet_length(${field}), 0)`).join(' + ')

const SELECT_ONE = `select ${FIELD_COLUMNS} from plantstore.plants where user_id = $1 and id = $2`
const SELECT = `select id, ${FIELD_COLUMNS} from plantstore.plants where user_id = $1 and id >= $2 order by id limit $3`
/**
 * The same up to the first plant behind $4 bytes of text: 500 large plants would not fit in memory. The plant before that
 * one does not count, because it may be the one that ends the page.
 */
const SELECT_PAGE = `select id, ${FIELD_COLUMNS} from (
    select id, ${FIELD_COLUMNS}, sum(${PLANT_TEXT_BYTES})
      over (order by id rows between unbounded preceding and 2 preceding) as bytes_before
    from (${SELECT}) as plants
  ) as plants where coalesce(bytes_before, 0) < $4 order by id`
/** A UTF-16 code unit takes at most 3 bytes of UTF-8: a page ends before it has more bytes. */
const PAGE_TEXT_BYTES = 3 * PAGE_TEXT_LENGTH
/** Up to this many plants the simpler statement reads a list. It is faster, and so many plants fit in memory. */
const SHORT_LIST_PLANTS = 32

/** Plants in PostgreSQL. */
export function plants({ read, writePlant }: Connections) {
  const getPlant = async (user: UserId, id: bigint) => {
    const [row] = await read<PlantRow>(SELECT_ONE, [user, id])
    if (row === undefined) throw new AppError('plant_not_found')
    return toPlant(row)
  }
  return {
    createPlant: (user, plant) => writePlant('create', { user, id: plant.id, values: valuesOf(plant) }),

    async listPlants(user, { after, limit }) {
      if (after === INT64_MAX) return EMPTY_PAGE
      const first = after === undefined ? INT64_MIN : after + 1n
      const [select, parameters] = limit <= SHORT_LIST_PLANTS ? [SELECT, []] : [SELECT_PAGE, [PAGE_TEXT_BYTES]]
      const rows = await read<PlantRow & Pick<StoredPlant, 'id'>>(select, [user, first, limit + 1, ...parameters])
      return takePage(rows, limit, toPlant)
    },

    getPlant,

    deletePlant: (user, id, condition) =>
      deleteIf(
        condition,
        () => getPlant(user, id),
        (...values) => writePlant('delete', { user, id, values }),
      ),

    // Other processes change plants unnoticed. So there is no version, and lists are not cached.
    plantsVersion: () => undefined,
    hasOnlyGrown: () => false,
  } satisfies Partial<Store>
}
