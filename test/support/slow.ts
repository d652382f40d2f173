import { connect } from 'node:net'
import { addPlants } from './many-plants.ts'

/** Plants with far more text than the buffers of a connection hold. */
export const LONG_PLANTS = { count: 4000, nameLength: 10_000 } as const

/** Gives these plants to every user of a SQLite database. */
export const addLongPlants = (database: string): void => addPlants(database, LONG_PLANTS.count, LONG_PLANTS)

/** Sends a request, and reads nothing behind the first bytes of the answer until `readOn`. */
export async function requestAndWait(port: number, request: string) {
  const { socket, ended, abort, [Symbol.dispose]: dispose } = sendHalf(port, request)
  await new Promise<void>((resolve) =>
    socket.once('data', () => {
      socket.pause()
      resolve()
    }),
  )
  return {
    /** Resolves to the whole answer when the connection has ended. */
    readOn(): Promise<string> {
      socket.resume()
      return ended()
    },
    /** Closes the connection in the middle of the answer. */
    abort,
    [Symbol.dispose]: dispose,
  }
}

/** Sends the first part of a request. The test sends the rest later, or never. */
export function sendHalf(port: number, half: string) {
  const socket = connect(port, '127.0.0.1')
  const closed = Promise.withResolvers<void>()
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => void chunks.push(chunk))
  // If the connection is cut, the answer ends there.
  socket.on('error', () => {}).on('close', () => closed.resolve())
  socket.write(half)
  const send = (more: string) => void socket.write(more)
  /** Sends nothing more. Resolves to the answer when the connection has ended. */
  const ended = async (): Promise<string> => {
    await closed.promise
    return Buffer.concat(chunks).toString('latin1')
  }
  const abort = () => void socket.destroy()
  return {
    socket,
    send,
    /** Sends the rest. Resolves to the answer when the connection has ended. */
    sendRest(rest: string): Promise<string> {
      send(rest)
      return ended()
    },
    ended,
    /** Closes the connection without the rest of the request. */
    abort,
    [Symbol.dispose]: abort,
  }
}
