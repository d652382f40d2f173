import { AppError } from '../../domain/error.ts'
import { INT64_MAX, INT64_MIN } from '../../domain/int64.ts'
import { type NewPlant, type PlantRow, type StoredPlant, toPlant, valuesOf } from '../../domain/plant.ts'
import { EMPTY_PAGE, type FoundUser, PAGE_TEXT_LENGTH, type Store } from '../../domain/store.ts'
import { NOBODY, type UserId } from '../../domain/token.ts'
import { deleteIf, takePage } from '../rows.ts'
import { FIELD_COLUMNS } from '../tables.ts'
import type { Connections } from './connections.ts'
import type { Query } from './driver.ts'
import { REPEAT_MS } from './errors.ts'
import { insertRows, selectPart } from './tables.ts'
import { findUser, insertUsers } from './users.ts'

const SELECT_ONE = `select ${FIELD_COLUMNS} from plantstore.plants where user_id = $1 and id = $2`
const IN_RANGE = 'user_id = $1 and id >= $2 order by id limit $3'
const NAMES = `id, ${FIELD_COLUMNS}`
const SELECT = `select ${NAMES} from plantstore.plants where ${IN_RANGE}`
/** A UTF-16 code unit takes at most 3 bytes of UTF-8: a page ends before it has more bytes. */
const PAGE_TEXT_BYTES = 3 * PAGE_TEXT_LENGTH
/** The same up to the plant behind so much text, which tells that the page is not the last one. */
const SELECT_PAGE = selectPart('plants', 'id', IN_RANGE, PAGE_TEXT_BYTES, { names: NAMES, rowsAfter: 1 })
/** Up to this many plants the simpler statement reads a list. It is faster, and so many plants fit in memory. */
const SHORT_LIST_PLANTS = 32

/** The user of a first plant, and the plant that was stored with the user. */
type Made = FoundUser & { readonly first?: NewPlant }

/** Plants in PostgreSQL. */
export function plants({ read, writePlant, changeTokens, quotaPlants }: Connections) {
  /** The users who are made now. Further first plants of such a user wait for that, and share its failure. */
  const makings = new Map<string, Promise<Made>>()
  const getPlant = async (user: UserId, id: bigint) => {
    const [row] = await read<PlantRow>(SELECT_ONE, [user, id])
    if (row === undefined) throw new AppError('plant_not_found')
    return toPlant(row)
  }
  return {
    createPlant: (user, plant) => writePlant('create', { user, id: plant.id, values: valuesOf(plant) }),

    async createFirstPlant({ name, createdAtMs }, plant) {
      const values = valuesOf(plant)
      const make = async (query: Query): Promise<Made> => {
        const found = await findUser(query, name)
        if (found !== undefined) return found
        if (quotaPlants === 0) throw new AppError('quota_exceeded')
        const { users } = await insertUsers(query, [{ userName: name, createdAtMs }])
        const id = users.get(name) ?? NOBODY
        await insertRows(query, 'plants', [[id, plant.id, ...values]])
        return { id, blockedAtMs: undefined, first: plant }
      }
      const making = makings.get(name) ?? changeTokens(make, REPEAT_MS).finally(() => makings.delete(name))
      makings.set(name, making)
      const { id: user, blockedAtMs, first } = await making
      if (blockedAtMs !== undefined) throw new AppError('token_invalid')
      if (first !== plant) await writePlant('create', { user, id: plant.id, values })
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
        (...values) => writePlant('delete', { user, id, values }),
      ),

    // Other processes change plants unnoticed. So there is no version, and lists are not cached.
    plantsVersion: () => undefined,
    hasOnlyGrown: () => false,
  } satisfies Partial<Store>
}
