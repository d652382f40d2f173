import { type Connection, openConnection } from '../support/raw-connection.ts'
import { formatRequest } from './clients.ts'

/** What a client sends on a connection that it then holds. */
type FirstBytes = (connection: Connection, token: string) => unknown

/** How much of a body is still missing: more than arrives during a test at a byte per second. */
const BODY_LEFT = 2000

const KINDS = {
  'half-sent heads': (connection) => connection.send('POST /plants HTTP/1.1\r\nHost: a\r\nX-Half: '),
  'heads at a byte per second': (connection) => connection.send('POST /plants HTTP/1.1\r\nHost: a\r\nX-Slow: '),
  'bodies at a byte per second': (connection, token) =>
    connection.send(
      formatRequest('POST', '/plants', token, { id: -1, name: 'x'.repeat(BODY_LEFT) }).slice(0, -BODY_LEFT),
    ),
  'long lists that nobody reads'(connection, token) {
    connection.pause()
    connection.send(formatRequest('GET', '/plants', token))
  },
  'idle connections': (connection, token) => connection.request(formatRequest('GET', '/healthz', token)),
} as const satisfies Record<string, FirstBytes>

/** A kind of slow client. */
export type SlowClientKind = keyof typeof KINDS

/** Opens connections of slow clients, a number of each kind. Slow bytes come only after `startSlowBytes`. */
export async function holdConnections(
  port: number,
  token: string,
  counts: Readonly<Partial<Record<SlowClientKind, number>>>,
) {
  const connections: Connection[] = []
  const slow: Connection[] = []
  for (const [kind, count] of Object.entries(counts)) {
    for (let index = 0; index < count; index++) {
      const connection = await openConnection(port)
      connections.push(connection)
      if (kind.endsWith('at a byte per second')) slow.push(connection)
      await KINDS[kind as SlowClientKind](connection, token)
    }
  }
  return {
    /** How many connections have ended. */
    countEnded: () => connections.filter(({ isClosed }) => isClosed()).length,
    /** Sends a byte per second on each slow connection until it ends. */
    startSlowBytes() {
      for (const connection of slow) {
        const timer = setInterval(() => connection.send('x'), 1000)
        void connection.ended.then(() => clearInterval(timer))
      }
    },
    [Symbol.dispose]() {
      for (const { cut } of connections) cut()
    },
  }
}
