import type { Socket } from 'bun'

/** Told when an answer has arrived whole. */
type OnAnswer = (connection: Connection, slot: number) => void

const HEAD_END = '\r\n\r\n'
const CONTENT_LENGTH = 'content-length: '
const STATUS_START = 'HTTP/1.1 '.length
const DIGIT_TWO = 0x32
const LINE_FEED = 0x0a

/** A kept-alive connection with one request under way at a time. */
export interface Connection {
  /** Sends a request. `slot` is what `onAnswer` is called with. Throws if the kernel takes only a part of it. */
  send(request: Buffer, slot: number): void
  close(): void
}

/** Opens a connection. Anything but answers with a 2xx status and a `Content-Length` is thrown, out of the event loop. */
export async function openConnection(port: number, onAnswer: OnAnswer): Promise<Connection> {
  let slot = -1
  let missingBytes = 0
  let lastBytes = 0
  let isClosing = false
  let socket: Socket | undefined

  const receive = (chunk: Buffer) => {
    if (slot === -1) throw new Error(`an answer to nothing: ${chunk.toString('latin1')}`)
    if (missingBytes > 0) missingBytes -= chunk.length
    // What is as long as the last answer is one. Were it not, what is left of it would be an answer to nothing.
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

/** How long an answer is, by its first chunk, which holds its head. */
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
