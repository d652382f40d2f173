import { describe, expect, test } from 'bun:test'
import { chmodSync, lstatSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { serve } from '../support/executable.ts'
import { until } from '../support/until.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

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

describe.concurrent('a server', () => {
  test('refuses to listen at the port of another process, and exits with 1', async () => {
    await using service = await serveDatabase()
    const { server } = service
    using second = makeDatabase()

    expect(await second.run('serve', '--listen', new URL(server.url).host)).toMatchObject(refused(server.url))
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  })

  test.each([
    // The block for documentation (RFC 5737): no machine has it.
    ['an address of another machine', '192.0.2.1:3000', ''],
    ['a host that does not exist', 'nosuch.host.invalid:1', 'there is no such host'],
    ['a host with too long a name', `${'x'.repeat(300)}:1`, 'there is no such host'],
    ['a socket in a missing directory', 'unix:missing/plantstore.sock', 'there is no such directory'],
    ['a socket with too long a path', `unix:${'x'.repeat(200)}`, 'its path is longer than that of a socket can be'],
  ])('refuses to listen at %s, and exits with 1', async (_, listen, reason) => {
    using made = makeDatabase()
    const { stderr, exitCode } = await made.run('serve', '--listen', listen)

    const url = listen.startsWith('unix:') ? listen : `http://${listen}`
    expect(exitCode).toBe(1)
    expect(stderr).toStartWith(`plantstore: Cannot listen on ${url}: ${reason}`)
    expect(stderr).toMatch(/^[^\n]+Choose another with --listen\.\n$/)
  })

  test('replaces a socket that a killed server left, and removes its socket at its end', async () => {
    using made = makeDatabase()
    const socket = join(made.folder, 'plantstore.sock')
    const killed = await serve(made.database, ['--listen', `unix:${socket}`])
    await killed.kill()
    const isLeft = lstatSync(socket).isSocket()
    await using server = await serve(made.database, ['--listen', `unix:${socket}`])

    expect([isLeft, server.address, await statusOver(socket)]).toEqual([true, `unix:${socket}`, 200])
    await server.end()
    expect(lstatSync(socket, { throwIfNoEntry: false })).toBeUndefined()
  })

  test('refuses the socket of a running server, also if that accepts no connection or has a full backlog', async () => {
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

  test('refuses a regular file as its socket, exits with 1 and leaves the file alone', async () => {
    using made = makeDatabase()
    const socket = join(made.folder, 'plantstore.sock')
    writeFileSync(socket, 'Dear diary')
    chmodSync(socket, 0o640)
    const { stderr, exitCode } = await made.run('serve', '--listen', `unix:${socket}`)

    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^plantstore: Cannot listen on unix:[^\n]*no socket[^\n]*\n$/)
    expect([readFileSync(socket, 'utf8'), statSync(socket).mode & 0o777]).toEqual(['Dear diary', 0o640])
  })
})
