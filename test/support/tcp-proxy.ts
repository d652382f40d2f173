import type { Socket, SocketHandler } from 'bun'
import { parsePostgresUrl } from '../../src/domain/database-url.ts'

/** What becomes of bytes on their way: passed on, held until they are released, or the connection is cut instead. */
export type Fate = 'pass' | 'hold' | 'cut'

interface Sides {
  client: Socket<Sides> | undefined
  server: Socket<Sides> | undefined
  readonly early: Uint8Array[]
}

/** Says what becomes of bytes that come from one side. */
export type Decide = (from: 'client' | 'server', bytes: Uint8Array) => Fate

/**
 * A way to a PostgreSQL server that a test watches: each time that bytes come, from the client or from the server, it says
 * what becomes of them. A connection that is cut is cut for the client alone: what the server has, it has.
 */
export function startProxy(url: string) {
  const address = parsePostgresUrl(url)
  if (typeof address === 'string') throw new Error(address)
  const { user, host, port, database } = address
  const target: { readonly unix: string } | { readonly hostname: string; readonly port: number } = host.startsWith('/')
    ? { unix: `${host}/.s.PGSQL.${port}` }
    : { hostname: host, port }
  let rule: Decide = () => 'pass'
  const held: (() => void)[] = []
  const sockets = new Set<Socket<Sides>>()
  const toServer: SocketHandler<Sides> = {
    open(server) {
      const sides = server.data
      sides.server = server
      sockets.add(server)
      for (const bytes of sides.early.splice(0)) server.write(bytes)
    },
    data: (server, bytes) => take('server', bytes, server.data),
    close: ({ data }) => void data.client?.end(),
    error: () => {},
  }
  const listener = Bun.listen<Sides>({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open(client) {
        const sides: Sides = { client, server: undefined, early: [] }
        client.data = sides
        sockets.add(client)
        const options = { data: sides, socket: toServer }
        const connected =
          'unix' in target
            ? Bun.connect<Sides>({ ...target, ...options })
            : Bun.connect<Sides>({ ...target, ...options })
        void connected.catch(() => client.end())
      },
      data: (client, bytes) => take('client', bytes, client.data),
      close() {},
      error: () => {},
    },
  })

  const take = (from: 'client' | 'server', bytes: Uint8Array, sides: Sides) => {
    const copy = new Uint8Array(bytes)
    const pass = () => {
      const to = from === 'client' ? sides.server : sides.client
      if (to === undefined) sides.early.push(copy)
      else to.write(copy)
    }
    const fate = rule(from, copy)
    if (fate === 'pass') return pass()
    if (from === 'client') held.push(pass)
    if (fate === 'cut') sides.client?.terminate()
  }

  return {
    /** The same database, by this way. */
    url: `postgres://${encodeURIComponent(user)}@127.0.0.1:${listener.port}/${database}?sslmode=disable`,
    /** From now on this decides. */
    decide(next: Decide) {
      rule = next
    },
    /** Passes on what clients have sent and the server has not had. */
    release() {
      for (const pass of held.splice(0)) pass()
    },
    [Symbol.dispose]() {
      listener.stop(true)
      for (const socket of sockets) socket.terminate()
    },
  }
}
