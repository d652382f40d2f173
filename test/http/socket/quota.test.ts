import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { expectProperty, PROPERTY_TIMEOUT_MS } from '../../support/properties.ts'
import { type Service, startService } from '../support/service.ts'
import { STORES_ON_SOCKETS } from '../support/transports.ts'

const CONNECTIONS = 64
const QUOTA = 5
/** More ids than the quota, and few enough that requests meet. */
const IDS = 12
/** No request of a property has this id. */
const FREE_ID = IDS + 1

const anyRequest = fc.record({ id: fc.nat(IDS), isDelete: fc.boolean() })
const anyBursts = fc.array(fc.array(anyRequest, { maxLength: CONNECTIONS }), { maxLength: 5 })

describe.each(STORES_ON_SOCKETS)('the quota of plants, $name', (transport) => {
  test(
    'is exact for any creates and deletes over 64 connections at once',
    async () => {
      await using service = await startService(transport, { quotaPlants: QUOTA })

      await expectProperty(`the quota, ${transport.name}`, anyBursts, async (bursts) => {
        const { text: token } = await service.createToken({ user: crypto.randomUUID() })
        let stored = 0
        for (const burst of bursts) {
          const codes = await Promise.all(burst.map((request) => send(service, token, request)))
          stored += count(codes, 200) - count(codes, 204)
          // At no moment the user could have had more plants than these.
          if (stored + count(codes, 204) < QUOTA) expect(codes).not.toContain(40302)
          expect(codes.filter((code) => ![200, 204, 40302, 40402, 40901].includes(code))).toEqual([])
          expect(stored).toBeLessThanOrEqual(QUOTA)
          expect((await service.names(token)).length).toBe(stored)
        }
        const next = await send(service, token, { id: FREE_ID, isDelete: false })
        expect(next).toBe(stored < QUOTA ? 200 : 40302)
      })
    },
    PROPERTY_TIMEOUT_MS,
  )
})

/** The status of an answer, or the code of its error. */
async function send(service: Service, token: string, { id, isDelete }: { id: number; isDelete: boolean }) {
  const answer = isDelete ? service.delete(id, { token }) : service.create({ id, name: 'Fern' }, { token })
  const { status, body } = await answer
  return body?.error ?? status
}

const count = (codes: readonly number[], wanted: number): number => codes.filter((code) => code === wanted).length
