import type { RunningServer } from '../../http/server.ts'
import type { Logger } from '../../log.ts'

/** This much of --drain is left for closing the store and for the last log lines. */
const CLOSE_MS = 1000

interface DrainLimits {
  readonly drainMs: number
  /** How long, within `drainMs`, the server still takes new connections: until load balancers have noticed. */
  readonly waitMs: number
}

/** Waits until requests in progress are answered, and cuts those that take longer than the limits allow. */
export async function drain(server: RunningServer, { drainMs, waitMs }: DrainLimits, log: Logger): Promise<void> {
  // While connections arrive, the runtime accepts them and runs no timer. While the server drains, each answer closes its
  // connection and clients open new ones. So without a wait, no timer may come before the listener is closed.
  if (waitMs > 0) await Bun.sleep(waitMs)
  const closeMs = Math.min(CLOSE_MS, drainMs / 4)
  const leftMs = Math.max(0, drainMs - waitMs - closeMs)
  const isOver = await Promise.race([server.stop().then(() => true), Bun.sleep(leftMs).then(() => false)])
  const cut = isOver ? 0 : server.kill()
  if (cut > 0) log.warn({ requests: cut }, 'requests were cut: they took longer than --drain')
}
