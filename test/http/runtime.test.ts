import { describe, expect, test } from 'bun:test'
import { exchange } from '../support/raw.ts'
import { type Service, SOCKET_TRANSPORTS, startService } from '../support/service.ts'

/** What the runtime answers before any code of ours runs, as the README lists it. */
const ANSWERED_BY_THE_RUNTIME: readonly [what: string, request: string, status: number][] = [
  ['no request at all', 'hello\r\n\r\n', 400],
  ['HTTP/1.1 without Host', 'GET /plants HTTP/1.1\r\n\r\n', 400],
  ['the target *', 'OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n', 400],
  ['two lengths', 'POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}', 400],
  ['a length of 2^53', 'POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 9007199254740992\r\n\r\n{}', 413],
  ['a length of 2^64', 'POST /plants HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n{}', 400],
  ['a head of 40 KB', `GET /plants HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(40_000)}\r\n\r\n`, 431],
  ['an HTTP version that there is not', 'GET /plants HTTP/9.9\r\nHost: a\r\n\r\n', 505],
]

describe.each(SOCKET_TRANSPORTS)('what the runtime answers by itself, $name', (transport) => {
  test('has no body, and ends the connection', async () => {
    await using service = await startService(transport)

    for (const [what, request, status] of ANSWERED_BY_THE_RUNTIME) {
      const answer = await exchange(service.port, request)
      expect([what, answer.status, answer.body, answer.isClosed]).toEqual([what, status, '', true])
    }
  })

  test('a method that it does not know it answers not at all', async () => {
    await using service = await startService(transport)

    expect(await exchange(service.port, 'FOO /plants HTTP/1.1\r\nHost: a\r\n\r\n')).toMatchObject({
      text: '',
      isClosed: true,
    })
  })

  test('a request that comes while one waits for its write ends the connection, and the write is done', async () => {
    await using service = await startService(transport)
    const create = (id: number) => {
      const body = JSON.stringify({ id, name: `${id}` })
      return `POST /plants HTTP/1.1\r\n${head(service)}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    }

    const { text } = await exchange(service.port, create(1) + create(2))

    const answered = text.match(/\{"name":"\d"\}/g)?.map((plant) => JSON.parse(plant).name) ?? []
    expect(await service.names()).toEqual(expect.arrayContaining(answered))
    // The first was under way when the connection ended, and goes on to its end.
    while (!(await service.names()).includes('1')) await Bun.sleep(5)
  })
})

const head = ({ token }: Service) => `Host: a\r\nAuthorization: Bearer ${token}\r\n`
