import { join } from 'node:path'
import type { Socket } from 'bun'
import { makeFolder } from '../../support/folder.ts'

/** A group of writes names its writer, a UUID, and nothing else does. */
const GROUP = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/
const PORT = 5432

/** When a connection is cut that has brought a group to the database: at once, or when the answer is there. */
export type Moment = 'sent' | 'answered'

/** A connection of a client with the one that was made for it. */
interface Pair {
  readonly client: Socket<Pair>
  server: Socket<Pair> | undefined
  /** What the client has sent before there was a connection to the database, or that it has not taken yet. */
  toServer: Buffer
  toClient: Buffer
  cutsAtAnswer: boolean
}

/**
 * Stands between a service and a database that listens at a unix socket, and can cut connections or lead them elsewhere.
 * It listens at a unix socket of its own.
 */
export function startProxy(target: string) {
  const folder = makeFolder()
  const pairs = new Set<Pair>()
  let to = target
  let armed: Moment | undefined
  let cuts = 0

  const end = (pair: Pair | undefined) => {
    if (pair === undefined) return
    pairs.delete(pair)
    pair.client.terminate()
    pair.server?.terminate()
  }
  const cut = (pair: Pair) => {
    cuts++
    end(pair)
  }
  const forward = (pair: Pair, chunk: Buffer) => {
    pair.toServer = Buffer.concat([pair.toServer, chunk])
    if (pair.server !== undefined) pair.toServer = send(pair.server, pair.toServer)
  }
  const takeRequest = (pair: Pair, chunk: Buffer) => {
    const isHit = armed !== undefined && GROUP.test(chunk.toString('latin1'))
    forward(pair, chunk)
    if (!isHit) return
    const moment = armed
    armed = undefined
    if (moment === 'answered') pair.cutsAtAnswer = true
    // What is with the kernel still reaches the database.
    else if (pair.toServer.length === 0) setImmediate(() => cut(pair))
  }
  const takeAnswer = (pair: Pair, chunk: Buffer) => {
    if (pair.cutsAtAnswer) return cut(pair)
    pair.toClient = send(pair.client, Buffer.concat([pair.toClient, chunk]))
  }
  const connectServer = async (pair: Pair) => {
    try {
      const server = await Bun.connect<Pair>({
        unix: to,
        data: pair,
        socket: {
          data: (_, chunk) => takeAnswer(pair, Buffer.from(chunk)),
          drain: (socket) => {
            pair.toServer = send(socket, pair.toServer)
          },
          close: () => end(pair),
          error: () => end(pair),
        },
      })
      pair.server = server
      if (!pairs.has(pair)) server.terminate()
      else pair.toServer = send(server, pair.toServer)
    } catch {
      // Nobody listens there, which its client is to see.
      end(pair)
    }
  }

  const listener = Bun.listen<Pair>({
    unix: join(folder.path, `.s.PGSQL.${PORT}`),
    socket: {
      open(client) {
        const pair = {
          client,
          server: undefined,
          toServer: Buffer.alloc(0),
          toClient: Buffer.alloc(0),
          cutsAtAnswer: false,
        }
        client.data = pair
        pairs.add(pair)
        void connectServer(pair)
      },
      data: (client, chunk) => takeRequest(client.data, Buffer.from(chunk)),
      drain: (client) => {
        client.data.toClient = send(client, client.data.toClient)
      },
      close: (client) => end(client.data),
      error: (client) => end(client.data),
    },
  })

  return {
    /** The URL of the same database by this way. */
    by: (url: string): string => url.replace(/@[^/]*\//, `@${encodeURIComponent(folder.path)}:${PORT}/`),
    /** Cuts the connection that brings the next group. */
    cutNext(moment: Moment): void {
      armed = moment
    },
    /** How many were cut like that. */
    cuts: () => cuts,
    /** Leads new connections to another socket, and cuts those that there are. */
    leadTo(other: string): void {
      to = other
      for (const pair of [...pairs]) end(pair)
    },
    [Symbol.dispose]() {
      for (const pair of [...pairs]) end(pair)
      listener.stop(true)
      folder[Symbol.dispose]()
    },
  }
}

/** Returns what was not taken. */
const send = (socket: Socket<Pair>, bytes: Buffer): Buffer =>
  bytes.length === 0 ? bytes : Buffer.from(bytes.subarray(Math.max(0, socket.write(bytes))))
