import type { Socket } from 'bun'

/** Called once an answer is complete. */
type OnAnswer = (connection: Connection, slot: number) => void

const HEAD_END = '\r\n\r\n'
const CONTENT_LENGTH = 'content-length: '
const STATUS_START = 'HTTP/1.1 '.length
const DIGIT_TWO = 0x32
const LINE_FEED = 0x0a

/** A kept-alive connection with one request at a time. */
export interface Connection {
  /** Sends a request, and passes `slot` to `onAnswer`. Throws if the kernel takes only a part of the request. */
  send(request: Buffer, slot: number): void
  close(): void
}

/** Opens a connection. Any answer without a 2xx status or a `Content-Length` is an uncaught exception. */
export async function openConnection(port: number, onAnswer: OnAnswer): Promise<Connection> {
  let slot = -1
  let missingBytes = 0
  let lastBytes = 0
  let isClosing = false
  let socket: Socket | undefined

  const receive = (chunk: Buffer) => {
    if (slot === -1) throw new Error(`an answer to nothing: ${chunk.toString('latin1')}`)
    if (missingBytes > 0) missingBytes -= chunk.length
    // A chunk as long as the last answer is taken for an answer. If it were not, its rest would be an answer without a request, which throws.
    else if (chunk.length !== lastBytes || chunk[STATUS_START] !== DIGIT_TWO) {
      lastBytes = answerBytes(chunk)
      missingBytes = lastBytes - chunk.length
    }
    if (missingBytes > 0) return
    if (missingBytes < 0) throw new Error('more was answered than was asked')
    const answered = slot
    slot = -1
    onAnswer(connection, answered)
  }

  const connection: Connection = {
    send(request, nextSlot) {
      slot = nextSlot
      if (socket?.write(request) !== request.length) throw new Error('the kernel took only a part of a request')
    },
    close() {
      isClosing = true
      socket?.end()
    },
  }
  socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data: (_, chunk) => receive(chunk),
      close() {
        if (!isClosing) throw new Error('the server closed a connection')
      },
    },
  })
  return connection
}

/** The length of an answer, from its first chunk, which contains the head. */
function answerBytes(chunk: Buffer): number {
  const bodyStart = chunk.indexOf(HEAD_END) + HEAD_END.length
  const head = chunk.toString('latin1', 0, bodyStart)
  const length = Number.parseInt(head.slice(lengthStart(head)), 10)
  if (chunk[STATUS_START] !== DIGIT_TWO || bodyStart < HEAD_END.length || !(length >= 0)) {
    throw new Error(`no answer to measure:\n${head}`)
  }
  return bodyStart + length
}

function lengthStart(head: string): number {
  const start = head.toLowerCase().indexOf(CONTENT_LENGTH)
  return start > 0 && head.charCodeAt(start - 1) === LINE_FEED ? start + CONTENT_LENGTH.length : head.length
}
