import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { runPlantstore } from '../../support/executable.ts'
import { addLongPlants, LONG_PLANTS, requestAndWait } from '../../support/slow.ts'
import { until } from '../../support/until.ts'
import { listRequest, type Service, startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS, type Transport } from '../support/transports.ts'

/** Commits of another process during one list. */
const COMMITS = 20
const LAST_CHUNK = ']\r\n0\r\n\r\n'

/** A service with a list that is longer than the buffers of a connection, and a token of the user who has it. */
async function startLongList(transport: Transport) {
  const service = await startService(transport)
  await service.createToken({ user: 'you' })
  const token = await service.createToken()
  addLongPlants(service.database)
  return { service, token }
}

/** Begins to read the list of a token, waits until `end` is done, and reads on. */
async function readAround(service: Service, token: string, end: () => unknown): Promise<string> {
  using list = await requestAndWait(service.port, listRequest(token))
  await end()
  return await list.readToEnd()
}

async function expectCut(answer: string, service: Service, tokenId: number) {
  expect(answer).toStartWith('HTTP/1.1 200 ')
  expect(answer.length).toBeLessThan(LONG_PLANTS.count * LONG_PLANTS.nameLength)
  expect(answer).not.toEndWith(LAST_CHUNK)
  const msg = 'a list was cut: its token is no longer accepted'
  await until('the log says why', (see) => see(service.logs()).includes(msg))
  expect(service.logLines().find((line) => line.msg === msg)).toMatchObject({ level: 'warn', tokenId })
}

describe.each(SOCKET_TRANSPORTS)('a list without a limit, $name', (transport) => {
  test('ends without the last chunk once its token is revoked, and the log says why', async () => {
    const { service, token } = await startLongList(transport)
    await using _service = service

    const answer = await readAround(service, token.text, () =>
      runPlantstore(['token', 'revoke', String(token.id), '--database', service.database]),
    )

    await expectCut(answer, service, token.id)
  })

  test('ends without the last chunk once its token has another user', async () => {
    const { service, token } = await startLongList(transport)
    await using _service = service
    using db = new Database(service.database)

    const answer = await readAround(service, token.text, async () => {
      db.run("update tokens set user_id = (select id from users where name = 'you') where id = ?", [token.id])
      // The other user has the same list. A get of the new plant shows that the server has seen the change.
      db.run("insert into plants (user_id, id, name) select id, -1, 'Fern' from users where name = 'you'")
      await until('the server sees it', async (see) => see(await service.get(-1, { token: token.text })).status === 200)
    })

    await expectCut(answer, service, token.id)
  })

  test('goes on whatever another process commits meanwhile', async () => {
    const { service } = await startLongList(transport)
    await using _service = service
    using db = new Database(service.database)
    db.run('pragma busy_timeout = 5000')
    const response = await service.fetch('/plants')

    let commits = 0
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true })
      if (commits++ < COMMITS) db.run('update users set created_at_ms = created_at_ms + 1')
    }

    expect(commits).toBeGreaterThan(COMMITS)
    expect(JSON.parse(text)).toHaveLength(LONG_PLANTS.count)
  })
})
