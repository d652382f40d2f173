import { INT64_MAX, INT64_MIN } from '../../domain/int64.ts'
import { PAGE_TEXT_LENGTH } from '../../domain/store.ts'
import { type PlantMethods, takePage } from '../plant-pages.ts'
import type { Connections } from './connections.ts'

type Row = [id: bigint, name: string, tag: string | null]

const SELECT = 'select id, name, tag from plantstore.plants where user_id = $1 and id >= $2 order by id limit $3'
/**
 * The same, but that it ends where the text before a plant has so many bytes: a page of large plants would be larger than
 * memory. The length of a text is known without reading it.
 */
const SELECT_PAGE = `select id, name, tag from (
    select id, name, tag, sum(octet_length(name) + coalesce(octet_length(tag), 0)) over (order by id) as bytes,
      octet_length(name) + coalesce(octet_length(tag), 0) as own_bytes
    from (${SELECT}) as plants
  ) as plants where bytes - own_bytes < $4 order by id`
/** No UTF-16 code unit takes more in UTF-8: past this many bytes the page has ended before. */
const PAGE_TEXT_BYTES = 3 * PAGE_TEXT_LENGTH
/** Lists of so many plants are read without that, which is faster: they cannot be that large. */
const SHORT_LIST_PLANTS = 32

/** Plants in PostgreSQL. */
export function plants({ read, plants }: Connections): PlantMethods {
  return {
    createPlant: (user, { id, name, tag }) => plants.create({ user, id, name, tag: tag ?? null }),

    async listPlants(user, { after, limit }) {
      if (after === INT64_MAX || limit === 0) return []
      const first = after === undefined ? INT64_MIN : after + 1n
      const rows =
        limit <= SHORT_LIST_PLANTS
          ? await read<Row>(SELECT, [user, first, limit])
          : await read<Row>(SELECT_PAGE, [user, first, limit, PAGE_TEXT_BYTES])
      return takePage(rows.map(([id, name, tag]) => ({ id, name, tag })))
    },

    deletePlant: (user, id) => plants.delete(user, id),

    // Others change plants without a word: what was read is not kept.
    plantsVersion: () => undefined,
    hasOnlyGrown: () => false,
  }
}
