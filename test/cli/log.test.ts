import { describe, expect, test } from 'bun:test'
import { exchange } from '../support/raw-connection.ts'
import { sendHalf } from '../support/slow.ts'
import { until } from '../support/until.ts'
import { serveDatabase } from './support/database.ts'

/** With an invalid host, the runtime leaves the characters of the path as they come. */
const HOST = 'Host: a b\r\n'

// The transcripts show how lines read.
describe.concurrent('the log of a server', () => {
  test.each([
    ['json', /^\{"level":/],
    ['pretty', /^\[\d\d:\d\d:/],
  ])('cannot be forged, and has no line longer than 2 KiB, whatever a client sends, in %s', async (format, begin) => {
    await using service = await serveDatabase(['--log-format', format])
    const { server, token } = service
    // The hyphens keep a path, which is percent-encoded, from looking like a token: the log would hide that.
    const fillers = ['a-', '"-', '\\-', '\u007f-', '\u0085-', '\u009b2K-', '\u00e9-', '\u2028-', '-%1b[2K', '-%0d%0a']
    for (const filler of fillers) {
      const target = filler.repeat(15_000 / Buffer.byteLength(filler))
      for (const start of [`GET /${target}`, `DELETE /plants/${target}`, `POST /plants?${target}`]) {
        const head = `${start} HTTP/1.1\r\n${HOST}User-Agent: ${'\u0085'.repeat(200)}\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n`
        await exchange(server.port, `${head}X-Request-Id: ${'i'.repeat(64)}\r\n\r\n`)
      }
    }
    await server.end()
    const lines = server.stdout().trimEnd().split('\n')
    const requests = lines.filter((line) => line.includes('i'.repeat(64)))

    expect(lines.filter((line) => !begin.test(line) || /[\p{Cc}\u2028\u2029]/u.test(line))).toEqual([])
    expect(requests).toHaveLength(3 * fillers.length)
    expect(requests.filter((line) => Buffer.byteLength(line) >= 2048)).toEqual([])
    const cut = requests.filter((line) => !line.includes('createPlant'))
    expect(cut.filter((line) => !line.includes('…'))).toEqual([])
  })

  test('has the address of a client also if the client goes away before its body is whole', async () => {
    await using service = await serveDatabase()
    const { server, token } = service
    const create = `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json`
    using half = await sendHalf(server.port, `${create}\r\nContent-Length: 99\r\nExpect: 100-continue\r\n\r\n{`)
    await half.until(() => half.text() !== '')
    // The kernel forgets the address at once if the client resets the connection.
    half.endOwnSide()
    await until('the request is logged', (see) => see(server.stdout()).includes('"createPlant"'))
    await server.end()

    expect(server.stdout()).toMatch(/"operation":"createPlant".*"status":408.*"remoteAddress":"127\.0\.0\.1"/)
  })
})
