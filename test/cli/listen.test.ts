import { expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { until } from '../support/until.ts'
import { makeDatabase } from './support/database.ts'

const refused = (url: string) => ({
  stderr: `plantstore: Cannot listen on ${url}: another process listens there. Choose another with --listen.\n`,
  exitCode: 1,
})

const statusOver = async (socket: string) => (await fetch('http://localhost/readyz', { unix: socket })).status

/** Opens connections to a server that accepts none, until the system refuses one more. */
async function fillBacklog(socket: string): Promise<readonly Socket[]> {
  const waiting: Socket[] = []
  for (;;) {
    const connection = connect(socket)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    connection.once('connect', () => resolve(true)).once('error', () => resolve(false))
    if (!(await promise)) return waiting
    waiting.push(connection)
  }
}

test('a server refuses the socket of a running server, also if that accepts no connection or has a full backlog', async () => {
  using made = makeDatabase()
  using other = makeDatabase()
  const socket = join(made.folder, 'plantstore.sock')
  await using server = await serve(made.database, ['--listen', `unix:${socket}`])
  const start = () => other.run('serve', '--listen', `unix:${socket}`)
  const first = await start()
  // A stopped process accepts nothing, so that its backlog fills.
  process.kill(server.pid, 'SIGSTOP')
  const second = await start()
  const waiting = await fillBacklog(socket)
  const third = await start()
  process.kill(server.pid, 'SIGCONT')
  for (const connection of waiting) connection.destroy()

  expect([first, second, third]).toMatchObject(Array(3).fill(refused(`unix:${socket}`)))
  // The server still has to accept what is in its backlog.
  await until('the server answers', async () => (await statusOver(socket).catch(() => 0)) === 200)
})
