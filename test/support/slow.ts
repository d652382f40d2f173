import { addPlants } from './many-plants.ts'
import { openConnection } from './raw-connection.ts'

/** Plants with far more text than the buffers of a connection hold. */
export const LONG_PLANTS = { count: 2500, nameLength: 10_000 } as const

/** Gives these plants to every user of a SQLite database. */
export const addLongPlants = (database: string): void => addPlants(database, LONG_PLANTS.count, LONG_PLANTS)

/** Sends a request, or its first part. The test sends the rest later, or never. */
export async function sendHalf(port: number, half: string) {
  const connection = await openConnection(port)
  await connection.send(half)
  return connection
}

/** Sends a request, and stops reading when the answer has begun, until `readToEnd`. */
export async function requestAndWait(port: number, request: string) {
  const connection = await sendHalf(port, request)
  await connection.until(() => connection.text() !== '')
  connection.pause()
  return connection
}
