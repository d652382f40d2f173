import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { COMMAND, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { exchange } from '../support/raw-connection.ts'
import { untilAccepted } from './support/connect.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/
const ID = /[0-9a-f-]{36}/
/** With an invalid host, the runtime leaves the characters of the path as they come. */
const HOST = 'Host: a b\r\n'

async function startLogged(flags: readonly string[] = []) {
  const service = await serveDatabase(flags)
  return {
    ...service,
    /** All lines, once it has ended. */
    async lines() {
      await service.server.end()
      return service.server.stdout().trimEnd().split('\n')
    },
  }
}

/** What a server writes to a terminal, from its start to its end, with one request. */
async function runOnTerminal(flags: readonly string[], env: Readonly<Record<string, string>> = {}) {
  using made = makeDatabase()
  const socket = join(made.folder, 'socket')
  const chunks: string[] = []
  const decoder = new TextDecoder()
  const args = ['serve', '--listen', `unix:${socket}`, '--database', made.database, ...flags]
  const child = Bun.spawn([...COMMAND, ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    terminal: { cols: 200, rows: 50, data: (_, chunk) => chunks.push(decoder.decode(chunk, { stream: true })) },
  })
  await untilAccepted(socket, child)
  await fetch('http://localhost/healthz', { unix: socket })
  child.kill('SIGTERM')
  await child.exited
  return chunks.join('')
}

describe.concurrent('the log of a server', () => {
  test('names the database by its absolute path, and says whether the server created it', async () => {
    using folder = makeFolder()
    const databasesLogged = async () => {
      await using server = await serve('plantstore.db', [], { cwd: folder.path })
      await server.end()
      const lines = server.stdout().trimEnd().split('\n')
      return lines.map((text) => JSON.parse(text)).flatMap(({ msg, database }) => (database ? [{ msg, database }] : []))
    }
    const database = join(folder.path, 'plantstore.db')
    const listening = { msg: 'listening', database }

    expect(await databasesLogged()).toEqual([{ msg: 'created a new, empty store', database }, listening])
    expect(await databasesLogged()).toEqual([listening])
  })

  test('has a JSON line for each event and request, with operation, user and status', async () => {
    await using logged = await startLogged()
    const { server, token } = logged
    await server.request('POST', '/plants', { token, body: { id: 1, name: 'Fern' } })
    await server.request('GET', '/plants?limit=1', { token })
    await server.request('DELETE', '/plants/2', { token })
    await server.request('GET', '/nothing')
    const lines = (await logged.lines()).map((line) => JSON.parse(line))

    const time = expect.stringMatching(TIME)
    const request = {
      ...{ level: 'info', time, requestId: expect.stringMatching(ID) },
      ...{ durationMs: expect.any(Number), bytes: expect.any(Number) },
      ...{ remoteAddress: '127.0.0.1', userAgent: `Bun/${Bun.version}` },
    }
    const mine = { ...request, user: 'me', tokenId: 1, msg: 'request' }
    expect(lines.map(({ msg }) => msg)).toEqual(['listening', ...Array(4).fill('request'), 'ending', 'ended'])
    for (const line of lines) expect(line).toMatchObject({ level: 'info', time })
    expect(lines.slice(1, 5)).toEqual([
      { ...mine, operation: 'createPlant', method: 'POST', path: '/plants', status: 200 },
      { ...mine, operation: 'listPlants', method: 'GET', path: '/plants', status: 200 },
      { ...mine, operation: 'deletePlant', method: 'DELETE', path: '/plants/2', status: 404 },
      { ...request, operation: 'other', method: 'GET', path: '/nothing', status: 404, msg: 'request' },
    ])
  })

  test('is written for people with --log-format pretty, without colours unless stdout is a terminal', async () => {
    await using logged = await startLogged(['--log-format', 'pretty'])
    await logged.server.request('GET', '/plants?limit=1', { token: logged.token })
    const lines = await logged.lines()

    expect(lines[0]).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: listening \{"address":"http:.*\}$/)
    expect(lines[1]).toMatch(
      /^\[[\d:.]+\] INFO: 200 listPlants in [\d.]+ ms: GET \/plants, me with token 1 \{"requestId":"[0-9a-f-]{36}","bytes":2.*\}$/,
    )
    expect(lines.join()).not.toContain('\u001b')
  })

  test('is coloured on a terminal, unless NO_COLOR or TERM=dumb says otherwise, or --log-format json', async () => {
    const [text, json, plain, dumb] = await Promise.all([
      runOnTerminal([]),
      runOnTerminal(['--log-format', 'json']),
      runOnTerminal([], { NO_COLOR: '1' }),
      runOnTerminal([], { TERM: 'dumb' }),
    ])
    const lines = json.trimEnd().split('\r\n')

    expect(text).toMatch(/\[32mINFO.*listening/)
    expect(text).toMatch(/\[32m200.*health in [\d.]+ ms: GET \/healthz/)
    expect(lines.map((line) => JSON.parse(line).level)).toContain('info')
    expect(json + plain + dumb).not.toContain('\u001b')
    for (const text of [plain, dumb]) expect(text).toContain('INFO: 200 health in ')
  })

  test.each(['json', 'pretty'])('cannot be forged by a request, in %s', async (format) => {
    await using logged = await startLogged(['--log-format', format])
    const { server } = logged
    const send = (target: string, id: string) =>
      exchange(server.port, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Request-Id: ${id}\r\n\r\n`)
    for (const part of ['%0d%0a', '\u0085', '\u009b2K', '\u2028', '\u007f', '\u001b[2K', '%1b[2K', '\t', '\r']) {
      await send(`/a${part}b`, 'plain')
      await send(`/plants?limit=${part}`, `a${part}b`)
    }
    const text = (await logged.lines()).join('\n')

    expect(text).toContain('/a%0d%0ab')
    for (const line of text.split('\n')) expect(line).toMatch(format === 'json' ? /^\{"level":/ : /^\[\d\d:\d\d:/)
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u2028\u2029]/u)
  })

  test.each(['json', 'pretty'])('has no line longer than 2 KiB, whatever a client sends, in %s', async (format) => {
    await using logged = await startLogged(['--log-format', format])
    const { server, token } = logged
    // The hyphens keep a path, which is percent-encoded, from looking like a token: the log would hide that.
    const fillers = ['a-', '"-', '\\-', '\u007f-', '\u0085-', '\u00e9-', '\u2028-', '-%1b']
    for (const filler of fillers) {
      const target = filler.repeat(15_000 / Buffer.byteLength(filler))
      for (const start of [`GET /${target}`, `DELETE /plants/${target}`, `POST /plants?${target}`]) {
        const head = `${start} HTTP/1.1\r\n${HOST}User-Agent: ${'\u0085'.repeat(200)}\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n`
        await exchange(server.port, `${head}X-Request-Id: ${'i'.repeat(64)}\r\n\r\n`)
      }
    }
    const requests = (await logged.lines()).filter((line) => line.includes('i'.repeat(64)))

    expect(requests).toHaveLength(3 * fillers.length)
    expect(requests.filter((line) => Buffer.byteLength(line) >= 2048)).toEqual([])
    const cut = requests.filter((line) => !line.includes('createPlant'))
    expect(cut.filter((line) => !line.includes('…'))).toEqual([])
  })
})
