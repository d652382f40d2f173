import { administer } from '../../support/postgres.ts'
import { type Cluster, GUARDED } from '../../support/postgres-cluster.ts'

/** Creates the role that needs a password, with a database. Returns the URL of that database, through the port. */
export async function makeGuarded({ url, port }: Cluster): Promise<string> {
  const { user, password } = GUARDED
  await administer(url, async (sql) => {
    await sql.unsafe(`create role ${user} login password '${password}'`).simple()
    await sql.unsafe(`create database ${user} owner ${user}`).simple()
  })
  return `postgres://${user}:${password}@127.0.0.1:${port}/${user}`
}
