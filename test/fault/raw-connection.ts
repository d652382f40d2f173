/** An answer that has come whole. */
export interface Reply {
  readonly status: number
  /** Its status line and its headers. */
  readonly head: string
  readonly body: string
}

/** A connection of a client that sees what is on the wire, with one request under way at a time. */
export interface RawConnection {
  /** Sends a request, or what is left of one. Resolves to the answer; rejects if the connection ends before it is whole. */
  ask(bytes: string): Promise<Reply>
  /** Sends bytes, and expects nothing. */
  write(bytes: string): void
  /** Takes nothing more of what comes. */
  pause(): void
  isOpen(): boolean
  /** Resolves when the connection has ended, whoever has ended it. */
  readonly ended: Promise<void>
  /** Ends it at once. */
  cut(): void
  [Symbol.dispose](): void
}

/** Connects to a port of this machine. Rejects if nobody accepts. */
export async function openConnection(port: number): Promise<RawConnection> {
  const ended = Promise.withResolvers<void>()
  let asking: { readonly resolve: (reply: Reply) => void; readonly reject: (error: Error) => void } | undefined
  let received = ''
  let isOpen = true

  const receive = (text: string) => {
    received += text
    const reply = asking && readReply(received)
    if (reply === undefined) return
    received = ''
    const { resolve } = asking ?? {}
    asking = undefined
    resolve?.(reply)
  }
  const end = () => {
    isOpen = false
    asking?.reject(new Error(`the connection ended after ${received.length} bytes of an answer`))
    asking = undefined
    ended.resolve()
  }
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: { data: (_, chunk) => receive(chunk.toString('latin1')), close: end, error() {} },
  })
  const write = (bytes: string) => {
    // One that has ended takes nothing, which is told as its end.
    const written = isOpen ? socket.write(bytes) : 0
    if (written > 0 && written < bytes.length) throw new Error('the kernel took only a part of a request')
  }
  const cut = () => socket.terminate()

  return {
    ask(bytes) {
      if (!isOpen) return Promise.reject(new Error('the connection has ended'))
      const { promise, resolve, reject } = Promise.withResolvers<Reply>()
      asking = { resolve, reject }
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

const HEAD_END = '\r\n\r\n'
const LAST_CHUNK = '\r\n0\r\n\r\n'

/** The answer that a text is, if it is whole. No JSON of ours holds a line end, so that chunks can be told from what is in them. */
export function readReply(text: string): Reply | undefined {
  const headEnd = text.indexOf(HEAD_END)
  if (headEnd === -1) return undefined
  const head = text.slice(0, headEnd)
  const status = Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length))
  const body = text.slice(headEnd + HEAD_END.length)
  if (status === 204 || status === 304) return { status, head, body }
  const length = /^content-length: (\d+)/im.exec(head)?.[1]
  if (length !== undefined) return body.length < Number(length) ? undefined : { status, head, body }
  return body.endsWith(LAST_CHUNK) ? { status, head, body: joinChunks(body) } : undefined
}

/** The content of a body that came in chunks (RFC 9112 §7.1). */
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

/** A request of a client that keeps its connections. */
export function formatRequest(method: string, path: string, token: string, body?: object, headers = ''): string {
  const head = `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n${headers}`
  if (body === undefined) return `${head}\r\n`
  const text = JSON.stringify(body)
  return `${head}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
}
