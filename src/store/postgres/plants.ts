import { INT64_MAX, INT64_MIN } from '../../domain/int64.ts'
import { PAGE_TEXT_LENGTH } from '../../domain/store.ts'
import { EMPTY_PAGE, type PlantMethods, takePage } from '../plant-pages.ts'
import type { Connections } from './connections.ts'

type Row = [id: bigint, name: string, tag: string | null]

const SELECT = 'select id, name, tag from plantstore.plants where user_id = $1 and id >= $2 order by id limit $3'
/**
 * The same up to the first plant behind $4 bytes of text: 500 large plants would not fit in memory. The plant before that
 * one does not count, because it may be the one that ends the page. PostgreSQL knows the length of a text without reading it.
 */
const SELECT_PAGE = `select id, name, tag from (
    select id, name, tag, sum(octet_length(name) + coalesce(octet_length(tag), 0))
      over (order by id rows between unbounded preceding and 2 preceding) as bytes_before
    from (${SELECT}) as plants
  ) as plants where coalesce(bytes_before, 0) < $4 order by id`
/** A UTF-16 code unit takes at most 3 bytes of UTF-8: a page ends before it has more bytes. */
const PAGE_TEXT_BYTES = 3 * PAGE_TEXT_LENGTH
/** Lists of so many plants are read without that, which is faster: they cannot be that large. */
const SHORT_LIST_PLANTS = 32

/** Plants in PostgreSQL. */
export function plants({ read, plants }: Connections): PlantMethods {
  return {
    createPlant: (user, { id, name, tag }) => plants.create({ user, id, name, tag: tag ?? null }),

    async listPlants(user, { after, limit }) {
      if (after === INT64_MAX) return EMPTY_PAGE
      const first = after === undefined ? INT64_MIN : after + 1n
      const rows =
        limit <= SHORT_LIST_PLANTS
          ? await read<Row>(SELECT, [user, first, limit + 1])
          : await read<Row>(SELECT_PAGE, [user, first, limit + 1, PAGE_TEXT_BYTES])
      return takePage(
        rows.map(([id, name, tag]) => ({ id, name, tag })),
        limit,
      )
    },

    deletePlant: (user, id) => plants.delete(user, id),

    // Others change plants without a word: what was read is not kept.
    plantsVersion: () => undefined,
    hasOnlyGrown: () => false,
  }
}
