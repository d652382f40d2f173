import type { Socket, SocketHandler } from 'bun'

type Side = 'client' | 'server'

/** What happens to bytes. `cut` holds them and ends the client's connection. `passThenCut` passes them on and ends both. */
type Fate = 'pass' | 'hold' | 'cut' | 'passThenCut'

/** Decides on bytes that come from one side of a connection. */
type Decide = (from: Side, bytes: Buffer, connection: object) => Fate

/** A connection of a client, and the one to the server that belongs to it. */
interface Pair {
  readonly sockets: Partial<Record<Side, Socket<Pair>>>
  /** Bytes that a side has not taken yet. */
  readonly pending: Record<Side, Buffer>
  hasHeldBytes: boolean
}

const OTHER = { client: 'server', server: 'client' } as const

/** Starts a relay before a server. A test decides what happens to the bytes of each connection. */
export function startRelay(server: Target) {
  const pairs = new Set<Pair>()
  const held: (() => void)[] = []
  let target = server
  let decide: Decide = () => 'pass'

  const flush = ({ sockets, pending }: Pair, side: Side) => {
    if (pending[side].length === 0) return
    pending[side] = pending[side].subarray(Math.max(0, sockets[side]?.write(pending[side]) ?? 0))
  }
  const end = (pair: Pair) => {
    pairs.delete(pair)
    for (const socket of Object.values(pair.sockets)) socket.terminate()
  }
  const take = (from: Side, pair: Pair, bytes: Buffer) => {
    const pass = () => {
      const to = OTHER[from]
      pair.pending[to] = Buffer.concat([pair.pending[to], bytes])
      flush(pair, to)
    }
    const fate = decide(from, bytes, pair)
    if (fate === 'pass' || fate === 'passThenCut') pass()
    else if (from === 'client') {
      held.push(pass)
      pair.hasHeldBytes = true
    }
    if (fate === 'cut') pair.sockets.client?.terminate()
    // The server still reads what the kernel has taken.
    if (fate === 'passThenCut') setImmediate(() => end(pair))
  }
  const handlerOf = (side: Side): SocketHandler<Pair> => ({
    data: ({ data: pair }, bytes) => take(side, pair, Buffer.from(bytes)),
    drain: ({ data: pair }) => flush(pair, side),
    close: ({ data: pair }) => {
      if (side === 'server' || !pair.hasHeldBytes) end(pair)
    },
    error: ({ data: pair }) => end(pair),
  })
  const open = async (client: Socket<Pair>) => {
    const pair: Pair = {
      sockets: { client },
      pending: { client: Buffer.alloc(0), server: Buffer.alloc(0) },
      hasHeldBytes: false,
    }
    client.data = pair
    pairs.add(pair)
    try {
      const server = await connect(target, pair, handlerOf('server'))
      pair.sockets.server = server
      if (pairs.has(pair)) flush(pair, 'server')
      else server.terminate()
    } catch {
      // Nobody listens there: the client sees that its connection ends.
      end(pair)
    }
  }
  const listener = Bun.listen<Pair>({
    hostname: '127.0.0.1',
    port: 0,
    socket: { ...handlerOf('client'), open: (client) => void open(client) },
  })

  return {
    port: listener.port,
    /** Replaces the function that decides. */
    decide(next: Decide): void {
      decide = next
    },
    /** Loses the answer to the first request with this text. Returns a function that counts lost answers. */
    loseAnswerTo(text: string, fate: 'cut' | 'hold' = 'cut'): () => number {
      let asked: object | undefined
      let count = 0
      decide = (from, bytes, connection) => {
        if (from === 'client' && bytes.includes(text)) asked ??= connection
        if (from === 'client' || connection !== asked || count > 0) return 'pass'
        count++
        return fate
      }
      return () => count
    },
    /** Passes on the bytes that were held, also those of clients that have gone. */
    release(): void {
      for (const pass of held.splice(0)) pass()
    },
    /** Leads new connections to another server, and cuts the present ones. */
    leadTo(next: Target): void {
      target = next
      for (const pair of [...pairs]) end(pair)
    },
    [Symbol.dispose](): void {
      for (const pair of [...pairs]) end(pair)
      listener.stop(true)
    },
  }
}

/** Where a server listens. */
export type Target = { readonly unix: string } | { readonly hostname: string; readonly port: number }

const connect = (target: Target, data: Pair, socket: SocketHandler<Pair>): Promise<Socket<Pair>> =>
  'unix' in target ? Bun.connect({ ...target, data, socket }) : Bun.connect({ ...target, data, socket })
