import { describe, expect, test } from 'bun:test'
import { AUDIENCE } from '../../support/issuer.ts'
import { ACCEPTED, ATTACKS, openArena } from '../support/jwt-attacks.ts'
import { bytesOf, startService } from '../support/service.ts'
import { SQLITE_TRANSPORTS } from '../support/transports.ts'

describe.each(SQLITE_TRANSPORTS)('attacks with a JWT, $name', (transport) => {
  test('are answered with the same bytes as an unknown token, and fetch nothing but the keys of the issuer', async () => {
    const arena = await openArena()
    const { issuer } = arena
    await using _ = issuer
    await using service = await startService(transport, { jwt: { issuer: issuer.issuer, audience: AUDIENCE } })
    const refused = bytesOf(await service.list('', { token: 'plst_x' }))

    const codes: unknown[] = []
    for (const [section, what, make, code = 40102] of ATTACKS) {
      const token = await make(arena)
      const answer = await service.create({ id: 1, name: 'Fern' }, { token })
      const isSame = code !== 40102 || bytesOf(answer) === refused
      if (answer.body.error !== code || !isSame) codes.push([section, what, answer.status, answer.text])
    }

    expect(codes).toEqual([])
    expect(ATTACKS.length).toBeGreaterThan(40)
    expect(await service.store.listUsers()).toMatchObject([{ name: 'me', plants: 0 }])
    const paths = new Set(issuer.state.requests)
    expect([...paths]).toEqual(['/.well-known/openid-configuration', '/jwks'])
    // The keys were read once, and once more for the first unknown key.
    expect(issuer.state.requests.length).toBeLessThanOrEqual(4)
  })

  test('are told from JWTs that only look odd', async () => {
    const arena = await openArena()
    await using _ = arena.issuer
    const jwt = { issuer: arena.issuer.issuer, audience: AUDIENCE }
    await using service = await startService(transport, { jwt })

    const statuses: unknown[] = []
    for (const [section, what, make] of ACCEPTED) {
      const { status } = await service.list('?limit=1', { token: await make(arena) })
      statuses.push([section, what, status])
    }

    expect(statuses.filter((each) => !JSON.stringify(each).endsWith(',200]'))).toEqual([])
  })
})
