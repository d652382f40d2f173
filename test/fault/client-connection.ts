import type { Answer } from './history.ts'

/** A keep-alive connection of a client, with one request under way at a time. It sends bytes as they are. */
export interface ClientConnection {
  /** Sends a request, or the rest of one. Rejects if the connection ends before the answer is whole. */
  request(bytes: string): Promise<Answer>
  /** Sends bytes and expects no answer. */
  write(bytes: string): void
  /** Stops reading what the server sends. */
  pause(): void
  isOpen(): boolean
  /** Resolves when either side has ended the connection. */
  readonly ended: Promise<void>
  /** Ends the connection at once. */
  cut(): void
  [Symbol.dispose](): void
}

/** Connects to a port of this machine. Rejects if nobody listens. */
export async function openConnection(port: number): Promise<ClientConnection> {
  const ended = Promise.withResolvers<void>()
  let waiting: { readonly resolve: (answer: Answer) => void; readonly reject: (error: Error) => void } | undefined
  let received = ''
  let isOpen = true

  const receive = (text: string) => {
    received += text
    const answer = waiting && parseAnswer(received)
    if (answer === undefined) return
    received = ''
    const { resolve } = waiting ?? {}
    waiting = undefined
    resolve?.(answer)
  }
  const end = () => {
    isOpen = false
    waiting?.reject(new Error(`the connection ended after ${received.length} bytes of an answer`))
    waiting = undefined
    ended.resolve()
  }
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: { data: (_, chunk) => receive(chunk.toString('latin1')), close: end, error() {} },
  })
  const write = (bytes: string) => {
    // A connection that has ended takes nothing. `close` reports its end.
    const written = isOpen ? socket.write(bytes) : 0
    if (written > 0 && written < bytes.length) throw new Error('the kernel took only a part of a request')
  }
  const cut = () => socket.terminate()

  return {
    request(bytes) {
      if (!isOpen) return Promise.reject(new Error('the connection has ended'))
      const { promise, resolve, reject } = Promise.withResolvers<Answer>()
      waiting = { resolve, reject }
      write(bytes)
      return promise
    },
    write,
    pause: () => void socket.pause(),
    isOpen: () => isOpen,
    ended: ended.promise,
    cut,
    [Symbol.dispose]: cut,
  }
}

const OPENED_AT_ONCE = 100

/** Opens many connections, 100 at a time. */
export async function openConnections(port: number, count: number): Promise<ClientConnection[]> {
  const connections: ClientConnection[] = []
  while (connections.length < count) {
    const next = Math.min(OPENED_AT_ONCE, count - connections.length)
    connections.push(...(await Promise.all(Array.from({ length: next }, () => openConnection(port)))))
  }
  return connections
}

const HEAD_END = '\r\n\r\n'
const LAST_CHUNK = '\r\n0\r\n\r\n'

/** The answer in a text, or `undefined` until it is whole. No JSON of the service holds a line end, so the last chunk is plain. */
export function parseAnswer(text: string): Answer | undefined {
  const headEnd = text.indexOf(HEAD_END)
  if (headEnd === -1) return undefined
  const [statusLine = '', ...lines] = text.slice(0, headEnd).split('\r\n')
  const status = Number(statusLine.split(' ')[1])
  const headers = new Headers(lines.map((line) => line.split(': ', 2) as [string, string]))
  const body = text.slice(headEnd + HEAD_END.length)
  if (status === 204 || status === 304) return { status, headers, body }
  const length = headers.get('content-length')
  if (length !== null) return body.length < Number(length) ? undefined : { status, headers, body }
  return body.endsWith(LAST_CHUNK) ? { status, headers, body: joinChunks(body) } : undefined
}

/** The content of a chunked body (RFC 9112 §7.1). */
function joinChunks(body: string): string {
  const parts: string[] = []
  for (let start = 0; ; ) {
    const end = body.indexOf('\r\n', start)
    const length = Number.parseInt(body.slice(start, end), 16)
    if (!(length > 0)) return parts.join('')
    parts.push(body.slice(end + 2, end + 2 + length))
    start = end + 2 + length + 2
  }
}

/** The bytes of a request that keeps its connection open. */
export function formatRequest(method: string, path: string, token: string, body?: object, headers = ''): string {
  const head = `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n${headers}`
  if (body === undefined) return `${head}\r\n`
  const text = JSON.stringify(body)
  return `${head}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
}
