import { openSqliteStore } from '../store.ts'

/** Updates the schema of a database. Refuses every database that a server would refuse. */
export async function updateSchema(path: string): Promise<void> {
  const store = await openSqliteStore(path, () => {}, { mustExist: true })
  await store.close()
}
