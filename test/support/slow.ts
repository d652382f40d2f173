import { Database } from 'bun:sqlite'
import { connect } from 'node:net'

/** Plants with far more text than the buffers of a connection hold. */
export const LONG_PLANTS = { count: 4000, nameLength: 10_000 } as const

/** Gives these plants to every user of a SQLite database. */
export function addLongPlants(database: string): void {
  using db = new Database(database)
  db.run('pragma busy_timeout = 5000')
  db.run(
    `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?1)
     insert into plants (user_id, id, name) select users.id, series.id, hex(zeroblob(?2)) from users, series`,
    [LONG_PLANTS.count, LONG_PLANTS.nameLength / 2],
  )
}

/** Sends a request, and reads nothing behind the first bytes of the answer until `readOn`. */
export async function requestAndWait(port: number, request: string) {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    if (chunks.length > 1) return
    socket.pause()
    begun.resolve()
  })
  socket.on('error', ended.reject).on('close', () => ended.resolve())
  socket.write(request)
  await begun.promise
  return {
    /** Resolves to the whole answer when the connection has ended. */
    async readOn(): Promise<string> {
      socket.resume()
      await ended.promise
      return Buffer.concat(chunks).toString('latin1')
    },
    /** Closes the connection in the middle of the answer. */
    abort: () => void socket.destroy(),
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

/** Sends the first part of a request. The test sends the rest later, or never. */
export function sendHalf(port: number, half: string) {
  const socket = connect(port, '127.0.0.1')
  const ended = Promise.withResolvers<void>()
  let answer = ''
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1')
  })
  // If the connection is cut, the answer ends there.
  socket.on('error', () => {}).on('close', () => ended.resolve())
  socket.write(half)
  return {
    send: (more: string) => void socket.write(more),
    /** Sends the rest. Resolves to the answer when the connection has ended. */
    async sendRest(rest: string): Promise<string> {
      socket.write(rest)
      await ended.promise
      return answer
    },
    /** Sends nothing more. Resolves to the answer when the connection has ended. */
    async ended(): Promise<string> {
      await ended.promise
      return answer
    },
    /** Closes the connection without the rest of the request. */
    abort: () => void socket.destroy(),
    [Symbol.dispose]: () => void socket.destroy(),
  }
}
