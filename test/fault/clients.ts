import { formatRequest, openConnection, parseWhole } from '../support/raw-connection.ts'
import { type History, requestIdOf, type Write } from './history.ts'
import { requestOf } from './load.ts'

/** Sends the first half of a create or put, up to the middle of its head or of its body. */
export async function sendHalf(port: number, token: string, history: History, part: 'head' | 'body', write: Write) {
  const { method, path, plant } = requestOf(write, history)
  // The server's log names it by its `X-Request-Id`.
  const request = formatRequest(method, path, token, plant, `X-Request-Id: ${requestIdOf(write)}\r\n`)
  const cutAt = part === 'head' ? request.indexOf('Content-Type') + 4 : request.length - 10
  const connection = await openConnection(port)
  void connection.send(request.slice(0, cutAt))
  return {
    /** Sends the rest. Resolves to the status of the answer, if one comes. */
    async complete(): Promise<number | undefined> {
      const answer = await connection.request(request.slice(cutAt)).catch(() => undefined)
      if (answer !== undefined) history.record(write, answer)
      return answer?.status
    },
    [Symbol.dispose]: connection.cut,
  }
}

/** The end of a list, with a `Content-Length` or in chunks. */
const LIST_END = /\](?:\r\n0\r\n\r\n)?$/

/** Reads a list at a steady pace; the whole one if there is no query. Resolves when the answer has begun. */
export async function readSlowly(port: number, token: string, bytesPerSecond: number, query = '') {
  const chunks: Buffer[] = []
  const begun = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  const startMs = performance.now()
  let bytes = 0
  const answer = () => parseWhole(Buffer.concat(chunks).toString('latin1'))
  await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      open: (socket) => void socket.write(formatRequest('GET', `/plants${query}`, token)),
      data(socket, chunk) {
        begun.resolve()
        chunks.push(Buffer.from(chunk))
        bytes += chunk.length
        if (LIST_END.test(chunk.toString('latin1')) && answer() !== undefined) over.resolve()
        socket.pause()
        const waitMs = (bytes / bytesPerSecond) * 1000 - (performance.now() - startMs)
        setTimeout(() => socket.resume(), Math.max(0, waitMs))
      },
      close: () => over.resolve(),
      error() {},
    },
  })
  await begun.promise
  return {
    /** How many bytes have come. */
    bytes: () => bytes,
    /** How many plants the answer has; `undefined` if the connection ends before the answer is whole. */
    async plants(): Promise<number | undefined> {
      await over.promise
      const whole = answer()
      return whole && JSON.parse(whole.body).length
    },
  }
}
