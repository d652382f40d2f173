import { describe, expect, test } from 'bun:test'
import { OTHERS_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { openStore } from '../../../src/store/open.ts'
import { runPlantstore } from '../../support/executable.ts'
import { openConnection } from '../../support/raw-connection.ts'
import { rawRequest } from '../support/raw-request.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

describe.each(SOCKET_TRANSPORTS)('Authorization lines, $name', (transport) => {
  test('are answered with the same bytes if they are empty, several, or of an unknown token', async () => {
    await using service = await startService(transport)
    const good = `Bearer ${service.token}`
    const rows = [
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
      rows.map(async (lines) => {
        const { text } = await service.exchange('GET', '/plants', { token: null, lines })
        return [lines, text.replace(/^(?:x-request-id|date): .*\r\n/gim, '')] as const
      }),
    )

    const [[, text = ''] = []] = answers
    expect(text).toStartWith('HTTP/1.1 401 ')
    expect(text).toMatch(/^www-authenticate: Bearer realm="plantstore", error="invalid_token"\r$/im)
    expect(text).toContain('"error":40102')
    expect(answers).toEqual(rows.map((lines) => [lines, text]))
  })

  test('let nobody create, list or delete if they are several, though each alone would', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const { text: other } = await service.createToken({ user: 'you' })
    const body = '{"id":2,"name":"Intruder"}'
    const content = ['Content-Type: application/json', `Content-Length: ${body.length}`]

    for (const [one, two] of [
      [service.token, service.token],
      [service.token, other],
      [other, service.token],
    ]) {
      const lines = [`Authorization: Bearer ${one}`, `Authorization: Bearer ${two}`]
      const answers = await Promise.all([
        service.exchange('POST', '/plants', { token: null, lines: [...lines, ...content], body }),
        service.exchange('GET', '/plants', { token: null, lines }),
        service.exchange('HEAD', '/plants?limit=1', { token: null, lines }),
        service.exchange('DELETE', '/plants/1', { token: null, lines }),
      ])

      expect(answers.map(({ status, body }) => [status, /"error":(\d+)/.exec(body)?.[1]])).toEqual([
        [401, '40102'],
        [401, '40102'],
        [401, undefined],
        [401, '40102'],
      ])
    }
    expect([await service.names(), await service.names(other)]).toEqual([['Fern'], []])
  })

  test('may have spaces around their value, and several before the token', async () => {
    await using service = await startService(transport)

    for (const value of ['Bearer T', '   Bearer T', 'Bearer T   ', 'bearer    T', '\tBearer T\t']) {
      const lines = [`Authorization:${value.replace('T', service.token)}`]
      expect([value, (await service.exchange('GET', '/plants', { token: null, lines })).status]).toEqual([value, 200])
    }
  })
})

describe.each(SOCKET_TRANSPORTS)('a token that is revoked, $name', (transport) => {
  test.each([
    [
      'another opening of the database',
      async (id: number, database: string) => {
        const store = await openStore(database, () => {})
        await store.revokeTokens({ id }, Date.now())
        await store.close()
        // As the command does.
        await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
      },
    ],
    [
      'another process',
      (id: number, database: string) => runPlantstore(['token', 'revoke', String(id), '--database', database]),
    ],
  ])('by %s is refused on an open connection, too', async (_, revoke) => {
    await using service = await startService(transport)
    const { text: token, id } = await service.createToken()
    using connection = await openConnection(service.port)
    const listAgain = async () => {
      const before = connection.text().length
      await connection.send(rawRequest('GET', '/plants?limit=0', { token, closes: false }))
      await connection.until(() => connection.text().length > before)
      return connection.text().slice(before, before + 'HTTP/1.1 200'.length)
    }

    expect([await listAgain(), await listAgain()]).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200'])
    await revoke(id, service.database)
    expect(await listAgain()).toBe('HTTP/1.1 401')
  })
})
