import { describe, expect, test } from 'bun:test'
import { openStore } from '../../../src/store/open.ts'
import { runPlantstore } from '../../support/executable.ts'
import { exchange } from '../../support/raw-connection.ts'
import { type Service, SOCKET_TRANSPORTS, startService } from '../support/service.ts'

/** All that came back but the request's id and the time. */
const bytesOf = (text: string) => text.replace(/^(?:x-request-id|date): .*\r\n/gim, '')

/** A request with these lines instead of one `Authorization`, on a connection of its own. */
const listWith = (service: Service, lines: string) =>
  exchange(service.port, `GET /plants HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${lines}\r\n`)

describe.each(SOCKET_TRANSPORTS)('Authorization lines, $name', (transport) => {
  test('answers the same bytes to an empty line, to several lines, and to an unknown token', async () => {
    await using service = await startService(transport)
    const good = `Bearer ${service.token}`
    const lines = [
      ['Authorization: Bearer nobody'],
      ['Authorization:'],
      ['Authorization: '],
      ['Authorization:', 'Authorization:'],
      ['Authorization:', `Authorization: ${good}`],
      [`Authorization: ${good}`, 'Authorization:'],
      [`Authorization: ${good}`, `Authorization: ${good}`],
      [`Authorization: ${good}`, 'Authorization: Bearer nobody'],
      ['Authorization: Basic bWU6c2VjcmV0', `authorization: ${good}`],
      ['Authorization: Basic bWU6c2VjcmV0', 'Authorization: Basic bWU6c2VjcmV0'],
      ['Authorization: Basic bWU6c2VjcmV0', 'Authorization: Digest a="b"'],
      ['Authorization: Digest a="b", c=d', 'Authorization: Digest a="b", c=d'],
      ['Authorization: Digest a="b"', 'Authorization:'],
      ['Authorization:', 'Authorization: Digest a="b"'],
      ['Authorization: Negotiate', 'Authorization: Negotiate'],
      ['Authorization: Bearer'],
      ['Authorization: bearer '],
      [`AUTHORIZATION: ${good}`, 'Host-Of-None: x', 'Authorization: Basic bWU6c2VjcmV0'],
      [`Authorization: Bearer\t${service.token}`],
      ['Authorization: Bearer \u00e9'],
    ]

    const answers = await Promise.all(
      lines.map((some) => listWith(service, some.map((line) => `${line}\r\n`).join(''))),
    )

    const [first] = answers
    expect(first).toMatchObject({ status: 401, body: expect.stringContaining('"error":40102') })
    expect(first?.headers.get('www-authenticate')).toBe('Bearer realm="plantstore", error="invalid_token"')
    expect(new Set(answers.map(({ text }) => bytesOf(text))).size).toBe(1)
  })

  test('lets nobody create, list or delete with several lines, though each alone would', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const { text: other } = await service.createToken({ user: 'you' })
    const body = '{"id":2,"name":"Intruder"}'

    for (const tokens of [
      [service.token, service.token],
      [service.token, other],
      [other, service.token],
    ]) {
      const lines = `Host: a\r\nConnection: close\r\n${tokens.map((token) => `Authorization: Bearer ${token}\r\n`).join('')}`
      const answers = await Promise.all(
        [
          `POST /plants HTTP/1.1\r\n${lines}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
          `GET /plants HTTP/1.1\r\n${lines}\r\n`,
          `HEAD /plants?limit=1 HTTP/1.1\r\n${lines}\r\n`,
          `DELETE /plants/1 HTTP/1.1\r\n${lines}\r\n`,
        ].map((request) => exchange(service.port, request)),
      )

      expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401])
      expect(answers.map(({ body }) => /"error":(\d+)/.exec(body)?.[1])).toEqual(['40102', '40102', undefined, '40102'])
    }
    expect([await service.names(), await service.names(other)]).toEqual([['Fern'], []])
  })

  test('answers the same bytes to no line and to one of another scheme, and calls nothing invalid', async () => {
    await using service = await startService(transport)
    const lines = [
      '',
      'Authorization: Basic bWU6c2VjcmV0\r\n',
      'Authorization: basic   bWU6c2VjcmV0 \r\n',
      'Authorization: Digest username="me", realm="plants", nonce="a,b", nc=00000001\r\n',
      'Authorization: Negotiate\r\n',
      `Authorization: Bearer${service.token}\r\n`,
      `Authorization: ${service.token}\r\n`,
    ]

    const answers = await Promise.all(lines.map((line) => listWith(service, line)))

    const [first] = answers
    expect(first).toMatchObject({ status: 401, body: expect.stringContaining('"error":40101') })
    expect(first?.headers.get('www-authenticate')).toBe('Bearer realm="plantstore"')
    expect(new Set(answers.map(({ text }) => bytesOf(text))).size).toBe(1)
  })

  test('takes spaces around the value, and several before the token', async () => {
    await using service = await startService(transport)
    const lines = ['Bearer T', '   Bearer T', 'Bearer T   ', 'bearer    T', '\tBearer T\t'].map(
      (value) => `Authorization:${value.replace('T', service.token)}\r\n`,
    )

    const answers = await Promise.all(lines.map((line) => listWith(service, line)))

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  })
})

describe.each(SOCKET_TRANSPORTS)('a revoked token, $name', (transport) => {
  test('is refused on the next request of an open connection, whoever revokes it', async () => {
    await using service = await startService(transport)
    const otherStore = await openStore(service.database, () => {})
    const revocations: Record<string, (id: number) => Promise<unknown>> = {
      'by another store on the same file': (id) => otherStore.revokeTokens({ id }, Date.now()),
      'by another process': (id) => runPlantstore(['token', 'revoke', String(id), '--database', service.database]),
    }

    for (const [name, revoke] of Object.entries(revocations)) {
      const { text, id } = await service.createToken()
      using connection = await connect(service.port)
      const request = `GET /plants?limit=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${text}\r\n\r\n`
      expect([name, await connection.status(request)]).toEqual([name, 200])
      expect([name, await connection.status(request)]).toEqual([name, 200])

      await revoke(id)

      expect([name, await connection.status(request)]).toEqual([name, 401])
    }
    await otherStore.close()
  })
})

/** A connection that stays open, and the status of each answer that comes on it. */
async function connect(port: number) {
  let answered = Promise.withResolvers<number>()
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      // These answers are short enough to arrive in one piece.
      data: (_, chunk) => answered.resolve(Number(chunk.toString('latin1').split(' ')[1])),
      close: () => answered.reject(new Error('the server closed the connection')),
      error: (_, error) => answered.reject(error),
    },
  })
  return {
    async status(request: string): Promise<number> {
      answered = Promise.withResolvers<number>()
      socket.write(request)
      return answered.promise
    },
    [Symbol.dispose]() {
      answered.promise.catch(() => {})
      socket.end()
    },
  }
}
