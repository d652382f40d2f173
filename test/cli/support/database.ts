import { join } from 'node:path'
import { runPlantstore, serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { addPlants } from '../../support/many-plants.ts'
import { createTokenIn } from '../../support/tokens.ts'

/** A folder with the path of a database that does not exist yet. Commands run on that database, in the folder. */
export function makeDatabase(parent?: string) {
  const folder = makeFolder(parent)
  const database = join(folder.path, 'plantstore.db')
  const all = (args: readonly string[]) => [...args, '--database', database]
  const run = (...args: readonly string[]) => runPlantstore(all(args), { cwd: folder.path })
  const json = async (...args: readonly string[]) => JSON.parse((await run(...args, '--json')).stdout)
  return {
    folder: folder.path,
    database,
    /** Runs a command to its end. */
    run,
    /** Runs a command that reads this text on stdin. */
    feed: (stdin: string | Uint8Array<ArrayBuffer>, ...args: readonly string[]) =>
      runPlantstore(all(args), { cwd: folder.path, stdin }),
    /** What a command prints with --json. */
    json,
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

/** A database of users `me` and `you`, who have plants with the ids from 1 to `plants`. `me` has two tokens, `you` has one. */
export async function fillDatabase(plants: number) {
  const made = makeDatabase()
  const token = await createTokenIn(made.database)
  for (const user of ['me', 'you']) await createTokenIn(made.database, user)
  addPlants(made.database, plants)
  return { ...made, token }
}

/** A server on a new database, and a write token of user me. */
export async function serveDatabase(
  flags: readonly string[] = [],
  options?: Parameters<typeof serve>[2],
  parent?: string,
) {
  const made = makeDatabase(parent)
  const token = await createTokenIn(made.database)
  const server = await serve(made.database, flags, options)
  return {
    ...made,
    token,
    server,
    async [Symbol.asyncDispose]() {
      await server.kill()
      made[Symbol.dispose]()
    },
  }
}
