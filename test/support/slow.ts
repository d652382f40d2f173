import { Database } from 'bun:sqlite'
import { connect } from 'node:net'

/** Plants that are together far more than the buffers of a connection hold. */
export const LONG_PLANTS = { count: 4000, nameLength: 10_000 } as const

/** Gives every user of a database those plants. */
export function addLongPlants(database: string): void {
  using db = new Database(database)
  db.run('pragma busy_timeout = 5000')
  db.run(
    `with recursive series (id) as (select 1 union all select id + 1 from series where id < ?1)
     insert into plants (user_id, id, name) select users.id, series.id, hex(zeroblob(?2)) from users, series`,
    [LONG_PLANTS.count, LONG_PLANTS.nameLength / 2],
  )
}

/** Sends a request and reads nothing until `readOn` is called, which resolves to all that came until the connection ended. */
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
    async readOn(): Promise<string> {
      socket.resume()
      await ended.promise
      return Buffer.concat(chunks).toString('latin1')
    },
    /** Goes away in the midst of the answer. */
    abort: () => void socket.destroy(),
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

/** Sends the first part of a request, and the rest when it is told to. */
export function sendHalf(port: number, half: string) {
  const socket = connect(port, '127.0.0.1')
  const ended = Promise.withResolvers<void>()
  let answer = ''
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1')
  })
  // Where the connection is cut the answer is what had come.
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
    /** Resolves to the answer when the connection has ended, without anything more being sent. */
    async ended(): Promise<string> {
      await ended.promise
      return answer
    },
    /** Goes away without sending the rest. */
    abort: () => void socket.destroy(),
    [Symbol.dispose]: () => void socket.destroy(),
  }
}
