interface ConnectOptions {
  /** The certificate to trust. Without one the connection is in clear. */
  readonly ca?: string | undefined
  /** The name in that certificate. */
  readonly serverName?: string
}

const OPENED_AT_ONCE = 100

/** A connection to this machine on which a test sends bytes as they are. */
export type Connection = Awaited<ReturnType<typeof openConnection>>

/** Connects to a port of this machine, or to the path of a unix socket. Rejects if nobody listens. */
export async function openConnection(at: number | string, { ca, serverName = '' }: ConnectOptions = {}) {
  let text = ''
  let isClosed = false
  let changed = Promise.withResolvers<void>()
  const secured = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const change = () => {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  const how: Omit<Bun.UnixSocketOptions<undefined>, 'unix'> = {
    ...(ca !== undefined && { tls: { ca, serverName } }),
    socket: {
      handshake: (_, __, error) => (error ? secured.reject(error) : secured.resolve()),
      data(_, chunk) {
        text += chunk.toString('latin1')
        change()
      },
      drain: change,
      close() {
        isClosed = true
        ended.resolve()
        change()
      },
      // `close` follows.
      error() {},
    },
  }
  const tcp = { hostname: '127.0.0.1', port: Number(at) }
  const socket = await (typeof at === 'string' ? Bun.connect({ unix: at, ...how }) : Bun.connect({ ...tcp, ...how }))
  socket.setNoDelay(true)
  if (ca !== undefined) await secured.promise

  /** Resolves when a condition holds, or the server has closed the connection. */
  const until = async (holds: () => boolean) => {
    while (!isClosed && !holds()) await changed.promise
  }
  const send = async (bytes: string | Uint8Array): Promise<void> => {
    let rest = Buffer.from(bytes)
    await until(() => {
      rest = rest.subarray(Math.max(0, socket.write(rest)))
      return rest.length === 0
    })
    socket.flush()
  }
  const cut = () => socket.terminate()
  return {
    /** All that the server has sent so far, a character for each byte, except the answers of `request`. */
    text: () => text,
    isClosed: () => isClosed,
    until,
    send,
    /** Sends a request, or the rest of one. Rejects if the connection ends before the answer is whole. */
    async request(bytes: string): Promise<RawAnswer> {
      void send(bytes)
      let answer = parseWhole(text)
      await until(() => {
        answer ??= parseWhole(text)
        return answer !== undefined
      })
      if (answer === undefined) throw new Error(`the connection ended after ${text.length} bytes of an answer`)
      text = ''
      return answer
    },
    /** Stops reading what the server sends, until `readToEnd`. */
    pause: () => void socket.pause(),
    /** Reads on. Resolves to all that the server has sent, once the connection has ended. */
    async readToEnd(): Promise<string> {
      socket.resume()
      await ended.promise
      return text
    },
    /** Ends this side of the connection, as a client does that sends nothing more. */
    endOwnSide: () => void socket.shutdown(),
    /** Resolves when either side has ended the connection. */
    ended: ended.promise,
    /** Ends the connection at once. */
    cut,
    [Symbol.dispose]: cut,
  }
}

/**
 * Sends bytes on a connection of their own. Returns all that comes back until the first answer is whole, or until the end of
 * the connection where the request or the answer asks for the end.
 */
export async function exchange(at: number | string, bytes: string | Uint8Array, options: ConnectOptions = {}) {
  const request = Buffer.from(bytes).toString('latin1')
  const closes = /Connection: close\r\n|^\S+ \S+ HTTP\/1\.0\r\n/.test(request)
  using connection = await openConnection(at, options)
  const answers = () => readAnswers(connection.text(), () => request.startsWith('HEAD ')).answers
  await connection.send(bytes)
  await connection.until(
    () => !closes && answers().some(({ status, headers }) => status >= 200 && headers.get('connection') !== 'close'),
  )
  return { text: connection.text(), isClosed: connection.isClosed(), ...withoutFrame(parse(connection.text())) }
}

/** The first answer of a text: its status, its headers, and all that follows. */
function parse(text: string) {
  const end = text.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = (end === -1 ? text : text.slice(0, end)).split('\r\n')
  const headers = new Headers(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    }),
  )
  return { status: Number(statusLine.split(' ')[1]), headers, body: end === -1 ? '' : text.slice(end + 4) }
}

/** An answer as it was sent. */
type RawAnswer = ReturnType<typeof parse>

/** The first answer of a text, without the frame of its chunks; `undefined` until it is whole. */
export function parseWhole(text: string): RawAnswer | undefined {
  const [answer] = readAnswers(text, () => false).answers
  return answer && withoutFrame(answer)
}

const withoutFrame = (answer: RawAnswer): RawAnswer =>
  answer.headers.get('transfer-encoding') === 'chunked' ? { ...answer, body: joinChunks(answer.body) } : answer

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

const LAST_CHUNK = '0\r\n\r\n'

/** The answers of a text that are whole, in their order, and what follows them. */
function readAnswers(text: string, isOfHead: (answer: RawAnswer) => boolean) {
  const answers: RawAnswer[] = []
  let rest = text
  while (rest.includes('\r\n\r\n')) {
    const answer = parse(rest)
    const bytes = isOfHead(answer) ? 0 : bodyBytesOf(answer)
    if (bytes === undefined || answer.body.length < bytes) break
    answers.push({ ...answer, body: answer.body.slice(0, bytes) })
    rest = answer.body.slice(bytes)
  }
  return { answers, rest }
}

/** The length of a body on the wire; `undefined` where the body is not whole, or ends with the connection. */
function bodyBytesOf({ status, headers, body }: RawAnswer): number | undefined {
  const length = headers.get('content-length')
  if (length !== null) return Number(length)
  if (status < 200 || status === 204 || status === 304) return 0
  if (headers.get('transfer-encoding') !== 'chunked') return headers.get('connection') === 'close' ? 0 : undefined
  const end = body.startsWith(LAST_CHUNK) ? 0 : body.indexOf(`\r\n${LAST_CHUNK}`) + 2
  return end === 1 ? undefined : end + LAST_CHUNK.length
}

/** The request that `answersTo` sends behind, with an id by which its answer is known. */
const NEXT_ID = 'next'
const NEXT = `GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: ${NEXT_ID}\r\n\r\n`

/**
 * Sends bytes on a connection, in pieces that are packets of their own. Once they are answered and the connection is still
 * there, sends one more request behind. Returns all answers until the server closes: of each the code of its error, or
 * its status where it has none, and `next` for the one to that request.
 */
export async function answersTo(connection: Connection, bytes: string, pieceBytes: number): Promise<string[]> {
  const answers = () => {
    const isNext = ({ headers }: RawAnswer) => headers.get('x-request-id') === NEXT_ID
    const isOfHead = (answer: RawAnswer) => bytes.startsWith('HEAD ') && !isNext(answer)
    const { answers, rest } = readAnswers(connection.text(), isOfHead)
    const named = answers.map((answer) => (isNext(answer) ? NEXT_ID : codeOf(answer)))
    return rest === '' ? named : [...named, rest]
  }
  for (let at = 0; at < bytes.length && !connection.isClosed(); at += pieceBytes) {
    await connection.send(Buffer.from(bytes.slice(at, at + pieceBytes), 'latin1'))
    // A turn, in which the server reads it.
    if (pieceBytes < bytes.length) await Bun.sleep(1)
  }
  await connection.until(() => answers().some((answer) => /^(?!100)\d{3,5}$/.test(answer)))
  await connection.send(NEXT)
  await connection.until(() => false)
  return answers()
}

const codeOf = ({ status, body }: RawAnswer): string => /^\{"error":(\d+),/.exec(body)?.[1] ?? String(status)

/** The bytes of a request that keeps its connection open. An object is sent as JSON. */
export function formatRequest(
  method: string,
  path: string,
  token: string,
  body?: object | string,
  headers = '',
): string {
  const head = `${method} ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n${headers}`
  if (body === undefined) return `${head}\r\n`
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return `${head}Content-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`
}

/** Opens many connections, 100 at a time. */
export async function openConnections(port: number, count: number): Promise<Connection[]> {
  const connections: Connection[] = []
  while (connections.length < count) {
    const next = Math.min(OPENED_AT_ONCE, count - connections.length)
    connections.push(...(await Promise.all(Array.from({ length: next }, () => openConnection(port)))))
  }
  return connections
}
