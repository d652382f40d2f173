import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { INT64_MIN } from '../../../src/domain/int64.ts'
import { toPlant } from '../../../src/domain/plant.ts'
import { expectProperty, PROPERTY_TIMEOUT_MS } from '../../support/properties.ts'
import { type Service, startService } from '../support/service.ts'
import { STORES_ON_SOCKETS } from '../support/transports.ts'
import { anyMutated } from './plant-mutations.ts'
import { anyPlant, anyStyle, membersOf, writeBody } from './plant-texts.ts'

describe.each(STORES_ON_SOCKETS)('a create of any plant, $name', (transport) => {
  test(
    'stores a valid plant once, however the body is written, and lists the same plant',
    async () => {
      await using service = await startService(transport)
      const anyTwo = fc.tuple(anyPlant, anyStyle, anyPlant, anyStyle)

      await expectProperty(`a valid plant, ${transport.name}`, anyTwo, async ([plant, style, other, otherStyle]) => {
        const token = await createUser(service)
        const { id } = plant
        const list = async (query: string) => (await service.list(query, { token })).body
        const create = async (body: string) => {
          const answer = await service.create(body, { token })
          return { status: answer.status, body: answer.body }
        }

        expect(await create(writeBody(membersOf(plant, style), style))).toEqual({ status: 200, body: toPlant(plant) })
        expect(await create(writeBody(membersOf({ ...other, id }, otherStyle), otherStyle))).toMatchObject({
          status: 409,
          body: { error: 40901 },
        })
        expect(await list('')).toEqual([toPlant(plant)])
        // Only the plant itself is between these two ids.
        if (id > INT64_MIN) expect(await list(`?limit=5&after=${id - 1n}`)).toEqual([toPlant(plant)])
        expect(await list(`?limit=5&after=${id}`)).toEqual([])
        expect((await service.delete(id, { token })).status).toBe(204)
        expect(await list('')).toEqual([])
      })
    },
    PROPERTY_TIMEOUT_MS,
  )

  test(
    'refuses a mutated plant with the code of the contract, and stores nothing',
    async () => {
      await using service = await startService(transport)

      await expectProperty(`a mutated plant, ${transport.name}`, anyMutated, async ({ body, contentType, code }) => {
        const token = await createUser(service)
        const headers = { 'content-type': contentType }
        const answer = await service.request('POST', '/plants', { token, body, headers })

        expect([answer.status, answer.body]).toEqual([
          Math.floor(code / 100),
          { error: code, message: expect.stringMatching(/^[A-Z`].+\.$/) },
        ])
        expect((await service.list('', { token })).text).toBe('[]')
      })
    },
    PROPERTY_TIMEOUT_MS,
  )
})

/** The token of a new user, who has no plants. */
const createUser = async ({ createToken }: Service) => (await createToken({ user: crypto.randomUUID() })).text
