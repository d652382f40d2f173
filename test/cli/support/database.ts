import { join } from 'node:path'
import { runPlantstore, serve } from '../../support/executable.ts'
import { makeFolder } from '../../support/folder.ts'
import { createTokenIn } from '../../support/tokens.ts'

/** A folder with the path of a database that does not exist yet. `run` runs a command on that database. */
export function makeDatabase(parent?: string) {
  const folder = makeFolder(parent)
  const database = join(folder.path, 'plantstore.db')
  const run = (...args: readonly string[]) => runPlantstore([...args, '--database', database], { cwd: folder.path })
  return { folder: folder.path, database, run, [Symbol.dispose]: folder[Symbol.dispose] }
}

/** A server on a new database, and a write token of user me. */
export async function serveDatabase(flags: readonly string[] = [], options?: Parameters<typeof serve>[2]) {
  const made = makeDatabase()
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
