import { connect } from 'node:http2'
import { openConnection } from '../support/raw-connection.ts'
import { HOST } from './behind-proxy.ts'

/** A proxy, and the certificate that it shows. */
interface Proxy {
  readonly port: number
  readonly ca: string
}

const PATH = '/garden/plants'
const HEAD = `POST ${PATH} HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`
const END = '0\r\nX-Sum: 5\r\n\r\n'
/** In how many places `sendByHttp1` can cut the end of a body. */
export const CUTS = END.length

/** Sends a body with a trailer by HTTP/1.1, and no token. The end of the body is cut there. Resolves to the status of the answer. */
export async function sendByHttp1({ port, ca }: Proxy, cut: number): Promise<number | undefined> {
  using connection = await openConnection(port, { ca, serverName: HOST })
  await connection.send(HEAD + END.slice(0, cut))
  await Bun.sleep(1)
  return (await connection.request(END.slice(cut))).status
}

/** The same by HTTP/2. Resolves to `undefined` if the proxy refuses trailers, as nginx 1.22 does. */
export async function sendByHttp2({ port, ca }: Proxy): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  const refuse = () => resolve(undefined)
  const session = connect(`https://127.0.0.1:${port}`, { ca, servername: HOST }).on('error', refuse)
  const target = { ':method': 'POST', ':path': PATH, ':authority': HOST }
  const request = session.request(target, { waitForTrailers: true }).on('error', refuse).on('close', refuse)
  request.on('wantTrailers', () => request.sendTrailers({ 'x-sum': '5' }))
  request.on('response', ({ ':status': status }) => resolve(status))
  request.end('hello')
  return promise.finally(() => session.destroy())
}
