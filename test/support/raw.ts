/** How long a connection is silent after its last byte before it counts as open. */
const SILENCE_MS = 300
/** How long the first byte, and the end that was asked for, is waited for: on a machine that is busy with other things, too. */
const PATIENCE_MS = 5000

interface Exchange {
  readonly onFirst?: string
  readonly ca?: string
}

/**
 * Sends bytes to a port, and `onFirst` when the first of an answer are there; by TLS where there is a certificate (`ca`) to
 * trust. Returns all that comes back until the server closes or has been silent for a while.
 */
export async function exchange(port: number, bytes: string | Uint8Array, { onFirst = '', ca }: Exchange = {}) {
  let text = ''
  let isClosed = false
  const over = Promise.withResolvers<void>()
  let timer: Timer | undefined
  const silenceMs = Buffer.from(bytes).includes('Connection: close\r\n') ? PATIENCE_MS : SILENCE_MS
  const wait = (ms: number) => {
    clearTimeout(timer)
    timer = setTimeout(over.resolve, ms)
  }
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    ...(ca !== undefined && { tls: { ca } }),
    socket: {
      handshake: (socket, _, error) => (error ? over.reject(error) : void socket.write(bytes)),
      data(socket, chunk) {
        if (text === '') socket.write(onFirst)
        text += chunk.toString('latin1')
        wait(silenceMs)
      },
      close() {
        isClosed = true
        over.resolve()
      },
      error: (_, error) => over.reject(error),
    },
  })
  wait(PATIENCE_MS)
  if (ca === undefined) socket.write(bytes)
  await over.promise
  clearTimeout(timer)
  // Before our own end, which closes it, too.
  const wasClosed = isClosed
  socket.end()
  return { text, isClosed: wasClosed, ...parse(text) }
}

/** The first answer of what came back: its status, its head and its body. */
function parse(text: string) {
  const end = text.indexOf('\r\n\r\n')
  const head = end === -1 ? text : text.slice(0, end)
  const lines = head.split('\r\n')
  const headers = new Headers(
    lines.slice(1).map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()]
    }),
  )
  return { status: Number(lines[0]?.split(' ')[1]), headers, body: end === -1 ? '' : text.slice(end + 4) }
}

/** What `answersTo` sends behind, with an id by which its answer is known. */
const NEXT_ID = 'next'
const NEXT = `GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: ${NEXT_ID}\r\n\r\n`

/**
 * Sends bytes to a port, in pieces that are packets of their own. Once they are answered and the connection is still
 * there, it sends one more request behind. Returns all answers until the server closes: of each the code of its error, or
 * its status where it has none, and `next` for the one to that request.
 */
export async function answersTo(port: number, bytes: string, pieceBytes: number): Promise<string[]> {
  const isHead = bytes.startsWith('HEAD ')
  let text = ''
  let isClosed = false
  let heard = Promise.withResolvers<void>()
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, chunk) {
        text += chunk.toString('latin1')
        heard.resolve()
      },
      close() {
        isClosed = true
        heard.resolve()
      },
      error: (_, error) => heard.reject(error),
    },
  })
  const until = async (isEnough: () => boolean) => {
    while (!isClosed && !isEnough()) {
      heard = Promise.withResolvers()
      await heard.promise
    }
  }
  socket.setNoDelay(true)
  for (let at = 0; at < bytes.length && !isClosed; at += pieceBytes) {
    await sendAll(socket, Buffer.from(bytes.slice(at, at + pieceBytes), 'latin1'), () => isClosed)
    // A turn, in which the server reads it.
    if (pieceBytes < bytes.length) await Bun.sleep(1)
  }
  await until(() => readAnswers(text, isHead).some((answer) => /^(?!100)\d{3,5}$/.test(answer)))
  if (!isClosed) socket.write(NEXT)
  await until(() => false)
  return readAnswers(text, isHead)
}

async function sendAll(socket: Bun.Socket, bytes: Uint8Array, isClosed: () => boolean): Promise<void> {
  for (let rest = bytes; rest.length > 0 && !isClosed(); ) {
    rest = rest.subarray(Math.max(0, socket.write(rest)))
    if (rest.length > 0) await Bun.sleep(1)
  }
  socket.flush()
}

/** The answers that are there whole, in the order in which they came, and what is no whole answer. */
function readAnswers(text: string, isHead: boolean): string[] {
  const answers: string[] = []
  let rest = text
  while (rest.includes('\r\n\r\n')) {
    const { status, headers, body } = parse(rest)
    const isNext = headers.get('x-request-id') === NEXT_ID
    const bytes = isHead && !isNext ? 0 : Number(headers.get('content-length'))
    if (body.length < bytes) break
    const code = /^\{"error":(\d+),/.exec(body.slice(0, bytes))?.[1]
    answers.push(isNext ? NEXT_ID : (code ?? String(status)))
    rest = body.slice(bytes)
  }
  return rest === '' ? answers : [...answers, rest]
}
