import { describe, expect, test } from 'bun:test'
import { chmodSync, lstatSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { until } from '../support/until.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

/** An address of the block for documentation (RFC 5737): no machine has it. */
const FOREIGN_ADDRESS = '192.0.2.1'
const FILE_MODE = 0o777

const serveArgs = (listen: string, database: string) => ['serve', '--listen', listen, '--database', database]

const refused = (url: string) => ({
  stderr: `plantstore: Cannot listen on ${url}: another process listens there. Choose another with --listen.\n`,
  exitCode: 1,
})

const statusOver = async (socket: string) => (await fetch('http://localhost/readyz', { unix: socket })).status
const modeOf = (path: string) => statSync(path).mode & FILE_MODE

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
    const { server, folder } = service
    const { host } = new URL(server.url)
    const { stderr, exitCode } = await runPlantstore(serveArgs(host, join(folder, 'second.db')))

    expect({ stderr, exitCode }).toMatchObject(refused(`http://${host}`))
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
  })

  test.each([
    ['an address of another machine', `${FOREIGN_ADDRESS}:3000`, ''],
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
    using folder = makeFolder()
    const socket = join(folder.path, 'plantstore.sock')
    const database = join(folder.path, 'plantstore.db')
    const killed = await serve(database, ['--listen', `unix:${socket}`])
    await killed.kill()
    const isLeft = lstatSync(socket).isSocket()
    await using server = await serve(database, ['--listen', `unix:${socket}`])

    expect(isLeft).toBe(true)
    expect(server.address).toBe(`unix:${socket}`)
    expect(await statusOver(socket)).toBe(200)
    await server.end()
    expect(lstatSync(socket, { throwIfNoEntry: false })).toBeUndefined()
  })

  test('refuses the socket of a running server, also if that accepts no connection or has a full backlog', async () => {
    using folder = makeFolder()
    const socket = join(folder.path, 'plantstore.sock')
    await using server = await serve(join(folder.path, 'plantstore.db'), ['--listen', `unix:${socket}`])
    const start = () => runPlantstore(serveArgs(`unix:${socket}`, join(folder.path, 'second.db')))
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
    using folder = makeFolder()
    const socket = join(folder.path, 'plantstore.sock')
    writeFileSync(socket, 'Dear diary')
    chmodSync(socket, 0o640)
    const { stderr, exitCode } = await runPlantstore(serveArgs(`unix:${socket}`, join(folder.path, 'plantstore.db')))

    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^plantstore: Cannot listen on unix:[^\n]*no socket[^\n]*\n$/)
    expect([readFileSync(socket, 'utf8'), modeOf(socket)]).toEqual(['Dear diary', 0o640])
  })
})
