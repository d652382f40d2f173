import type { Subprocess } from 'bun'
import { until } from '../../support/until.ts'

/**
 * Waits until a server accepts connections at its unix socket: the file alone is there before. Rejects if the server has
 * ended instead.
 */
export async function untilAccepted(unix: string, server: Pick<Subprocess, 'exitCode' | 'signalCode'>) {
  await until('the server accepts connections', () => {
    if (server.exitCode !== null || server.signalCode !== null) {
      throw new Error(`the server did not listen: it ended with ${server.exitCode ?? server.signalCode}`)
    }
    return Bun.connect({ unix, socket: { data() {} } }).then(
      (socket) => {
        socket.terminate()
        return true
      },
      () => false,
    )
  })
}
