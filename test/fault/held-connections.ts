import { formatRequest, openConnection, type RawConnection } from './raw-connection.ts'

/** How a connection is held: what is sent once it is open. */
type Hold = (wire: RawConnection, token: string) => Promise<unknown> | undefined

/** The ways to hold a connection. */
export type HoldingName = keyof typeof HOLDS

const HOLDS = {
  'half-sent heads': (wire) => void wire.write('POST /plants HTTP/1.1\r\nHost: a\r\nX-Half: '),
  'heads of a byte a second': (wire) => void wire.write('POST /plants HTTP/1.1\r\nHost: a\r\nX-Slow: '),
  'bodies of a byte a second': (wire, token) =>
    void wire.write(
      formatRequest('POST', '/plants', token, { id: -1, name: 'x'.repeat(BODY_LEFT) }).slice(0, -BODY_LEFT),
    ),
  'long lists that are never read'(wire, token) {
    wire.pause()
    return void wire.write(formatRequest('GET', '/plants', token))
  },
  'idle connections': (wire, token) => wire.ask(formatRequest('GET', '/healthz', token)),
} as const satisfies Record<string, Hold>

/** What of a body is yet to come when its first bytes have been sent: more than comes while anybody waits. */
const BODY_LEFT = 2000

/** The ways in which bytes go on coming. */
const DRIPPING: readonly string[] = ['heads of a byte a second', 'bodies of a byte a second'] satisfies HoldingName[]

/** Sends a byte a second until the connection ends. */
function drip(wire: RawConnection): void {
  const dripping = setInterval(() => wire.write('x'), 1000)
  void wire.ended.then(() => clearInterval(dripping))
}

/** Opens connections to a port and holds them, so many in each way. No slow bytes are sent before `startDripping`. */
export async function holdConnections(
  port: number,
  token: string,
  counts: Readonly<Partial<Record<HoldingName, number>>>,
) {
  const wires: RawConnection[] = []
  const dripping: RawConnection[] = []
  for (const [name, count] of Object.entries(counts)) {
    for (let index = 0; index < count; index++) {
      const wire = await openConnection(port)
      wires.push(wire)
      if (DRIPPING.includes(name)) dripping.push(wire)
      await HOLDS[name as HoldingName](wire, token)
    }
  }
  return {
    /** How many connections are closed. */
    countEnded: () => wires.filter(({ isOpen }) => !isOpen()).length,
    startDripping() {
      for (const wire of dripping) drip(wire)
    },
    [Symbol.dispose]() {
      for (const { cut } of wires) cut()
    },
  }
}
