import { addPlants } from '../../support/many-plants.ts'
import { createTokenIn } from '../../support/tokens.ts'
import { makeDatabase } from './database.ts'

/** A database of users `me` and `you`, who have plants with the ids from 1 to `plants`. `me` has two tokens, `you` has one. */
export async function fillDatabase(plants: number) {
  const made = makeDatabase()
  const token = await createTokenIn(made.database)
  for (const user of ['me', 'you']) await createTokenIn(made.database, user)
  addPlants(made.database, plants)
  return { ...made, token }
}
