import { join } from 'node:path'
import { runPlantstore } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { addPlants } from '../../support/many-plants.ts'
import { createTokenIn } from '../../support/tokens.ts'

/**
 * A folder with a database of users `me` and `you`, who have plants with the ids from 1 to `plants`, and two tokens and one.
 * `run` runs a command on the database, in the folder.
 */
export async function fillDatabase(plants: number) {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const [token = ''] = [
    await createTokenIn(database),
    await createTokenIn(database),
    await createTokenIn(database, 'you'),
  ]
  addPlants(database, plants)
  return {
    folder: folder.path,
    database,
    token,
    run: (args: readonly string[], stdin?: string) =>
      runPlantstore([...args, '--database', database], { cwd: folder.path, ...(stdin !== undefined && { stdin }) }),
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}
