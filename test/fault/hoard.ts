import { openWire, requestOf, type Wire } from './wire.ts'

/** How a connection is held: what is done once it is open. */
type Hold = (wire: Wire, token: string) => Promise<unknown> | undefined

/** The ways to hold a connection. */
export type HoldName = keyof typeof HOLDS

const HOLDS = {
  'half-sent heads': (wire) => void wire.write('POST /plants HTTP/1.1\r\nHost: a\r\nX-Half: '),
  'heads of a byte a second'(wire) {
    wire.write('POST /plants HTTP/1.1\r\nHost: a\r\nX-Slow: ')
    return drip(wire)
  },
  'bodies of a byte a second'(wire, token) {
    wire.write(requestOf('POST', '/plants', token, { id: -1, name: 'x'.repeat(BODY_LEFT) }).slice(0, -BODY_LEFT))
    return drip(wire)
  },
  'long lists that are never read'(wire, token) {
    wire.pause()
    return void wire.write(requestOf('GET', '/plants', token))
  },
  'idle connections': (wire, token) => wire.ask(requestOf('GET', '/healthz', token)),
} as const satisfies Record<string, Hold>

/** What of a body is yet to come when its first bytes have been sent: more than comes while anybody waits. */
const BODY_LEFT = 2000

/** A byte a second, as long as somebody takes it. */
function drip(wire: Wire): undefined {
  const dripping = setInterval(() => wire.write('x'), 1000)
  void wire.ended.then(() => clearInterval(dripping))
}

/** Opens connections to a port and holds them, so many in each way. */
export async function hoard(port: number, token: string, counts: Readonly<Partial<Record<HoldName, number>>>) {
  const wires: Wire[] = []
  for (const [name, count] of Object.entries(counts)) {
    for (let index = 0; index < count; index++) {
      const wire = await openWire(port)
      wires.push(wire)
      await HOLDS[name as HoldName](wire, token)
    }
  }
  return {
    wires,
    [Symbol.dispose]() {
      for (const { cut } of wires) cut()
    },
  }
}
