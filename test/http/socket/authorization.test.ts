import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { OTHERS_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { formatRequest } from '../../support/raw-connection.ts'
import { sendHalf } from '../../support/slow.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

describe.each(SOCKET_TRANSPORTS)('a token that another process has changed, $name', (transport) => {
  test.each(
    [
      ['was revoked', 'update tokens set revoked_at_ms = 1 where id = ?', 401, 40102] as const,
      ['may only read', "update tokens set scope = 'read' where id = ?", 403, 40301] as const,
      [
        'has another user',
        "update tokens set user_id = (select id from users where name = 'you') where id = ?",
        401,
        40102,
      ] as const,
    ].flatMap((row) => [['POST', '/plants', ...row] as const, ['PUT', '/plants/1', ...row] as const]),
  )(
    'by %s %s stores no plant whose body arrives after the token %s',
    async (method, path, _, change, status, error) => {
      await using service = await startService(transport)
      const { text: token, id } = await service.createToken()
      const { text: yours } = await service.createToken({ user: 'you' })
      const body = '{"id":1,"name":"Fern"}'
      const request = formatRequest(method, path, token, body, 'Connection: close\r\n')
      using creating = await sendHalf(service.port, request.slice(0, -body.length))
      // The token of that head was accepted once a later request on another connection is answered.
      await service.list('', { token })

      using db = new Database(service.database)
      db.run(change, [id])
      await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
      await creating.send(body)
      const answer = await creating.readToEnd()

      expect(answer).toStartWith(`HTTP/1.1 ${status} `)
      expect(answer).toContain(`"error":${error}`)
      expect([await service.names(), await service.names(yours)]).toEqual([[], []])
    },
  )
})
