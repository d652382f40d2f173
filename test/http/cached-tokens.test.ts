import { describe, expect, test } from 'bun:test'
import { TOKEN_RANDOM_BYTES, tokenText } from '../../src/domain/token.ts'
import { runPlantstore } from '../support/executable.ts'
import { exchange } from '../support/raw-connection.ts'
import { type Answer, bytesOf, type Service, startService } from './support/service.ts'
import { SOCKET_TRANSPORTS, TRANSPORTS, type Transport } from './support/transports.ts'

const INVALID = { status: 401, error: 40102 }
const FERN = [{ name: 'Fern' }]
/** A token that no store has. */
const UNKNOWN = tokenText(new Uint8Array(TOKEN_RANDOM_BYTES))

describe.each(TRANSPORTS)('a cached token, $name', (transport) => {
  test('is refused once another process has revoked it', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const { text: token, id } = await service.createToken()
    const { text: other } = await service.createToken()
    expect(await listTwice(service, token)).toEqual([FERN, FERN])
    expect(await listTwice(service, other)).toEqual([FERN, FERN])

    const { exitCode } = await runPlantstore(['token', 'revoke', String(id), '--database', service.database])

    expect(exitCode).toBe(0)
    await untilSeen(service, token, transport)
    for (const answer of await toEachOperation(service, token)) expect(answer).toEqual(INVALID)
    expect(await bytesOfRefusal(service, token)).toBe(await bytesOfRefusal(service, UNKNOWN))
    expect(await listTwice(service, other)).toEqual([FERN, FERN])
  })

  test('is refused once another process has deleted its user', async () => {
    await using service = await startService(transport)
    const { text: token } = await service.createToken({ user: 'you' })
    await service.create({ id: 1, name: 'Fern' }, { token })
    expect(await listTwice(service, token)).toEqual([FERN, FERN])

    const { exitCode } = await runPlantstore(['user', 'delete', 'you', '--yes', '--database', service.database])

    expect(exitCode).toBe(0)
    await untilSeen(service, token, transport)
    for (const answer of await toEachOperation(service, token)) expect(answer).toEqual(INVALID)
    expect(await bytesOfRefusal(service, token)).toBe(await bytesOfRefusal(service, UNKNOWN))
  })

  test('is refused once it has expired', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    // Valid for long enough to be accepted twice, also on a busy machine.
    let token = ''
    let answers: Answer[] = []
    for (let lifetimeMs = 100; answers.length < 2; lifetimeMs *= 2) {
      token = (await service.createToken({ expiresAtMs: Date.now() + lifetimeMs })).text
      answers = [await service.list('?limit=5', { token }), await service.list('?limit=5', { token })]
      answers = answers.filter(({ status }) => status === 200)
    }

    let last = answers[1]
    while (last?.status === 200) {
      await Bun.sleep(5)
      last = await service.list('?limit=5', { token })
    }

    for (const answer of await toEachOperation(service, token)) expect(answer).toEqual(INVALID)
    expect(last && bytesOf(last)).toBe(await bytesOfRefusal(service, UNKNOWN))
  })

  test('of scope read still may not write', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const { text: token } = await service.createToken({ scope: 'read' })

    for (let round = 0; round < 2; round++) {
      expect(await listTwice(service, token)).toEqual([FERN, FERN])
      expect(refusal(await service.create({ id: 2, name: 'Ivy' }, { token }))).toEqual({ status: 403, error: 40301 })
      expect(refusal(await service.delete(1, { token }))).toEqual({ status: 403, error: 40301 })
    }
    expect(await listTwice(service, service.token)).toEqual([FERN, FERN])
  })

  test('is found by its Authorization line, and not by a similar one', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const { token } = service
    const lines = [
      `Bearer ${token},`,
      `Bearer ${token} x`,
      `Bearer ${token}x`,
      `Bearer ${token.slice(0, -1)}`,
      `Bearer ${token.toLowerCase()}`,
      'Bearer',
    ]

    expect(await listTwice(service, token)).toEqual([FERN, FERN])

    for (const authorization of lines) {
      const answer = await service.list('?limit=5', { token: null, headers: { authorization } })
      expect([authorization, refusal(answer)]).toEqual([authorization, INVALID])
    }
    expect(refusal(await service.list('?limit=5', { token: null }))).toEqual({ status: 401, error: 40101 })
    for (const authorization of [token, `Basic ${token}`]) {
      const answer = await service.list('?limit=5', { token: null, headers: { authorization } })
      expect([authorization, refusal(answer)]).toEqual([authorization, { status: 401, error: 40101 }])
    }
    // Other spellings of the scheme are accepted.
    for (const authorization of [`bearer ${token}`, `Bearer   ${token}`]) {
      const answer = await service.list('?limit=5', { token: null, headers: { authorization } })
      expect([authorization, answer.body]).toEqual([authorization, FERN])
    }
  })
})

describe.each(SOCKET_TRANSPORTS)('several Authorization lines, $name', (transport) => {
  test('are refused, also if one of them alone is in the cache', async () => {
    await using service = await startService(transport)
    await service.create({ id: 1, name: 'Fern' })
    const { text: other } = await service.createToken({ user: 'you' })
    expect(await listTwice(service, service.token)).toEqual([FERN, FERN])
    expect(await listTwice(service, other)).toEqual([[], []])

    for (let round = 0; round < 2; round++) {
      for (const tokens of [
        [service.token, service.token],
        [service.token, other],
        [other, service.token],
        [service.token, 'nobody'],
      ]) {
        const lines = tokens.map((token) => `Authorization: Bearer ${token}\r\n`).join('')
        const head = 'GET /plants?limit=5 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
        const answer = await exchange(service.port, `${head}${lines}\r\n`)
        expect([answer.status, JSON.parse(answer.body).error]).toEqual([401, 40102])
      }
    }
  })
})

/** The same capped list, twice: the second answer may come from the cache. */
const listTwice = async (service: Service, token: string) => [
  (await service.list('?limit=5', { token })).body,
  (await service.list('?limit=5', { token })).body,
]

/** Waits for the longest time that a change of tokens by another process may take to show. */
async function untilSeen(service: Service, token: string, { othersSeenWithinMs = 0 }: Transport): Promise<void> {
  const deadlineMs = performance.now() + othersSeenWithinMs
  while (performance.now() < deadlineMs && (await service.list('?limit=5', { token })).status === 200)
    await Bun.sleep(5)
}

const bytesOfRefusal = async (service: Service, token: string) => bytesOf(await service.list('?limit=5', { token }))

const refusal = ({ status, body }: Answer) => ({ status, error: body?.error })

/** The answers to a request to each operation. The answer to HEAD has no body: its status must be 401. */
async function toEachOperation(service: Service, token: string) {
  const head = await service.request('HEAD', '/plants?limit=5', { token })
  expect(head.status).toBe(401)
  return [
    refusal(await service.list('?limit=5', { token })),
    refusal(await service.list('', { token })),
    refusal(await service.create({ id: 9, name: 'Intruder' }, { token })),
    refusal(await service.delete(1, { token })),
  ]
}
