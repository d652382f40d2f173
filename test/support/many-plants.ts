import { Database } from 'bun:sqlite'
import type { NewPlant } from '../../src/domain/plant.ts'
import type { Store } from '../../src/domain/store.ts'
import type { UserId } from '../../src/domain/token.ts'
import { GROUP_MAX_WRITES } from '../../src/engine/group-queue.ts'

interface ManyPlants {
  /** The length of each name; a short one with the id if left out. Plants with long names have no tags. */
  readonly nameLength?: number
  /** The user who gets the plants; every user if left out. */
  readonly user?: string
}

/** Gives users of a database plants with the ids from 1 to `count`, at once. */
export function addPlants(database: string, count: number, { nameLength = 0, user = '%' }: ManyPlants = {}): void {
  using db = new Database(database)
  db.run('pragma busy_timeout = 20000')
  db.run(
    `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?1)
     insert into plants (user_id, id, name, tag)
     select users.id, series.id, iif(?2, hex(zeroblob(?2 / 2)), 'Monstera ' || series.id),
       iif(?2 or series.id % 2, null, 'evergreen')
     from users, series where users.name like ?3`,
    [count, nameLength, user],
  )
}

/** Creates plants a full group at a time: a store refuses writes that wait for long behind a full group. */
export async function createPlants(store: Store, user: UserId, plants: readonly NewPlant[]): Promise<void> {
  for (let at = 0; at < plants.length; at += GROUP_MAX_WRITES) {
    await Promise.all(plants.slice(at, at + GROUP_MAX_WRITES).map((plant) => store.createPlant(user, plant)))
  }
}
