/** How long a connection is silent after its last byte before it counts as open. */
const SILENCE_MS = 300
/** How long the first byte is waited for: on a machine that is busy with other things, too. */
const FIRST_BYTE_MS = 5000

/** Sends bytes to a port and returns all that comes back until the server closes or has been silent for a while. */
export async function exchange(port: number, bytes: string | Uint8Array, silenceMs = SILENCE_MS) {
  let text = ''
  let isClosed = false
  const over = Promise.withResolvers<void>()
  let timer: Timer | undefined
  const wait = (ms: number) => {
    clearTimeout(timer)
    timer = setTimeout(over.resolve, ms)
  }
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      data(_, chunk) {
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
  wait(FIRST_BYTE_MS)
  socket.write(bytes)
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
