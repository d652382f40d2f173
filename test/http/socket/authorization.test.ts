import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { OTHERS_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { runPlantstore } from '../../support/executable.ts'
import { openConnection } from '../../support/raw-connection.ts'
import { sendHalf } from '../../support/slow.ts'
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

    const refusalOf = async (method: string, path: string, lines: readonly string[]) => {
      const { text } = await service.exchange(method, path, { token: null, lines })
      return text.replace(/^(?:x-request-id|date): .*\r\n/gim, '')
    }
    const answers = await Promise.all(rows.map((lines) => refusalOf('GET', '/plants', lines)))
    // No operation takes several lines, though each alone would do.
    const twice = Array(2).fill(`Authorization: ${good}`)
    answers.push(await refusalOf('POST', '/plants', twice), await refusalOf('DELETE', '/plants/1', twice))

    const [text = ''] = answers
    expect(text).toStartWith('HTTP/1.1 401 ')
    expect(text).toMatch(/^www-authenticate: Bearer realm="plantstore", error="invalid_token"\r$/im)
    expect(text).toContain('"error":40102')
    expect(answers).toEqual(answers.map(() => text))
  })

  test('may have the scheme in any letter case, spaces around their value, and several before the token', async () => {
    await using service = await startService(transport)

    for (const value of ['Bearer T', '   BEARER T', 'bEaReR T   ', 'bearer    T', '\tBearer T\t']) {
      const lines = [`Authorization:${value.replace('T', service.token)}`]
      expect([value, (await service.exchange('GET', '/plants', { token: null, lines })).status]).toEqual([value, 200])
    }
  })
})

describe.each(SOCKET_TRANSPORTS)('a token that another process has changed, $name', (transport) => {
  test.each([
    ['was revoked', 'update tokens set revoked_at_ms = 1 where id = ?', 401, 40102],
    ['may only read', "update tokens set scope = 'read' where id = ?", 403, 40301],
    [
      'has another user',
      "update tokens set user_id = (select id from users where name = 'you') where id = ?",
      401,
      40102,
    ],
  ])('stores no plant whose body arrives after the token %s', async (_, change, status, error) => {
    await using service = await startService(transport)
    const { text: token, id } = await service.createToken()
    const { text: yours } = await service.createToken({ user: 'you' })
    const body = '{"id":1,"name":"Fern"}'
    const lines = ['Content-Type: application/json', `Content-Length: ${body.length}`]
    using creating = await sendHalf(service.port, rawRequest('POST', '/plants', { token, lines }))
    // The token of that head was accepted once a later request on another connection is answered.
    await service.exchange('GET', '/plants', { token })

    using db = new Database(service.database)
    db.run(change, [id])
    await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
    await creating.send(body)
    const answer = await creating.readToEnd()

    expect(answer).toStartWith(`HTTP/1.1 ${status} `)
    expect(answer).toContain(`"error":${error}`)
    expect([await service.names(), await service.names(yours)]).toEqual([[], []])
  })

  test('is refused on an open connection, too', async () => {
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
    await runPlantstore(['token', 'revoke', String(id), '--database', service.database])
    expect(await listAgain()).toBe('HTTP/1.1 401')
  })
})
