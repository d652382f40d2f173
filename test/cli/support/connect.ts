import { connect } from 'node:net'
import type { Subprocess } from 'bun'
import { until } from '../../support/until.ts'

/**
 * Waits until a server accepts connections at its unix socket: the file alone is there before. Rejects if the server has
 * ended instead.
 */
export async function untilAccepted(socket: string, server: Pick<Subprocess, 'exitCode' | 'signalCode'>) {
  await until('the server accepts connections', () => {
    if (server.exitCode !== null || server.signalCode !== null) {
      throw new Error(`the server did not listen: it ended with ${server.exitCode ?? server.signalCode}`)
    }
    return isAccepted(socket)
  })
}

function isAccepted(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(path)
  socket.on('connect', () => {
    socket.destroy()
    resolve(true)
  })
  socket.on('error', () => resolve(false))
  return promise
}
