import { expect, test } from 'bun:test'
import { AUDIENCE } from '../../support/issuer.ts'
import { attacksOn, odditiesOf, openArena } from '../support/jwt-attacks.ts'
import { bytesOf, startService } from '../support/service.ts'
import { SQLITE_TRANSPORTS } from '../support/transports.ts'

test.each(SQLITE_TRANSPORTS)(
  'attacks with a JWT get the bytes of an unknown token and fetch nothing but keys, and what only looks odd is accepted, $name',
  async (transport) => {
    const arena = await openArena()
    await using issuer = arena.issuer
    await using service = await startService(transport, { jwt: { issuer: issuer.issuer, audience: AUDIENCE } })
    const refused = bytesOf(await service.list('', { token: 'plst_x' }))
    const attacks = attacksOn(arena)

    const taken: unknown[] = []
    for (const { section, what, make, code } of attacks) {
      const answer = await service.create({ id: 1, name: 'Fern' }, { token: await make() })
      const isSame = code !== 40102 || bytesOf(answer) === refused
      if (answer.body.error !== code || !isSame) taken.push([section, what, answer.status, answer.text])
    }
    const requests = [...issuer.state.requests]
    for (const { section, what, make } of odditiesOf(arena)) {
      const { status } = await service.list('?limit=1', { token: await make() })
      if (status !== 200) taken.push([section, what, status])
    }

    expect(taken).toEqual([])
    expect(attacks.length).toBeGreaterThan(100)
    expect(await service.store.listUsers()).toMatchObject([{ name: 'me', plants: 0 }])
    expect([...new Set(requests)]).toEqual(['/.well-known/openid-configuration', '/jwks'])
    // The keys were read once, and once more for the first unknown key.
    expect(requests.length).toBeLessThanOrEqual(4)
  },
)
