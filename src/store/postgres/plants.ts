import { AppError } from '../../domain/error.ts'
import { INT64_MAX, INT64_MIN } from '../../domain/int64.ts'
import { type NewPlant, type PlantRow, type StoredPlant, toPlant, valuesOf } from '../../domain/plant.ts'
import {
  EMPTY_PAGE,
  type FoundUser,
  type NewToken,
  PAGE_TEXT_LENGTH,
  type PlantOwner,
  type Plants,
  type ProviderUser,
} from '../../domain/store.ts'
import { NOBODY, type UserId } from '../../domain/token.ts'
import { queueGroups, type WriteResults } from '../../engine/group-queue.ts'
import { throwFromEngine } from '../errors.ts'
import { byIdOrName, deleteIf, type Expected, mayMake, takePage, writeIf } from '../rows.ts'
import { FIELD_COLUMNS } from '../tables.ts'
import type { Connections } from './connections.ts'
import type { Query } from './driver.ts'
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

/** A plant of a user who may not be stored yet. The row lacks the id of the user. */
interface FirstPlant extends Pick<NewToken, 'userName' | 'createdAtMs'> {
  readonly row: readonly (bigint | string | null)[]
}

/** Plants in PostgreSQL. */
export function plants(connections: Connections) {
  const { read, writePlant } = connections
  const makeUser = openFirstPlants(connections)
  const getPlant = async (user: UserId, id: bigint) => {
    const [row] = await read<PlantRow>(SELECT_ONE, [user, id])
    if (row === undefined) throw new AppError('plant_not_found')
    return toPlant(row)
  }
  const idOf = async (owner: PlantOwner): Promise<UserId> =>
    typeof owner === 'number' ? owner : ((await findUser(read, owner.name))?.id ?? NOBODY)
  const write = async (kind: 'create' | 'put', owner: PlantOwner, plant: NewPlant, expected: Expected) => {
    // At once for a user's id, so that writes keep their order.
    const isNamed = typeof owner !== 'number'
    const user = isNamed ? await (mayMake(expected) ? makeUser(owner, plant) : idOf(owner)) : owner
    return user === undefined || writePlant({ kind, user, id: plant.id, values: valuesOf(plant), expected })
  }
  return {
    createPlant: byIdOrName(async (owner, plant) => void (await write('create', owner, plant, 'none'))),

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

    putPlant: byIdOrName((owner, plant, condition) =>
      writeIf(
        condition,
        async () => getPlant(await idOf(owner), plant.id),
        (expected) => write('put', owner, plant, expected),
      ),
    ),

    // Other processes change plants unnoticed. So there is no version, and lists are not cached.
    plantsVersion: () => undefined,
    isSameUpTo: () => false,
  } satisfies Plants
}

/** Returns a function that gives the id of the user with a name. It stores a missing user with the plant: then it gives none. */
function openFirstPlants({ read, changeTokens, quotaPlants, observer, deadlines }: Connections) {
  const first = (group: readonly FirstPlant[]) => changeTokens((query) => makeUsers(query, group), deadlines.repeatMs)
  const firstPlants = queueGroups({ perform: { first }, observer, deadlines })

  return async ({ name, createdAtMs }: ProviderUser, { id, ...plant }: NewPlant): Promise<UserId | undefined> => {
    const values = valuesOf(plant)
    const content = { userName: name, createdAtMs, row: [id, ...values] }
    const createUser = () =>
      firstPlants.write({ lane: 'first', content, textLength: values.join('').length }).catch(throwFromEngine)
    // `makeUsers` returns the user. With a quota of 0 no user is made.
    const user = (await (quotaPlants === 0 ? findUser(read, name) : createUser())) as FoundUser | undefined
    if (user === undefined && quotaPlants === 0) throw new AppError('quota_exceeded')
    if (user?.blockedAtMs !== undefined) throw new AppError('token_invalid')
    return user?.id
  }
}

/** Stores the missing users, each with the first of their plants. Returns the users of all other plants. */
async function makeUsers(query: Query, group: readonly FirstPlant[]): Promise<WriteResults> {
  const { users, newUsers } = await insertUsers(query, group)
  const firsts = newUsers.flatMap((name) => group.find(({ userName }) => userName === name) ?? [])
  const rows = firsts.map(({ userName, row }) => [users.get(userName)?.id, ...row])
  await insertRows(query, 'plants', rows)
  const userOf = (each: FirstPlant) => (firsts.includes(each) ? undefined : users.get(each.userName))
  return { refused: [], returned: group.map((each, index) => [index, userOf(each)]) }
}
