import { describe, expect, test } from 'bun:test'
import { OTHERS_SEEN_WITHIN_MS } from '../../../src/domain/store.ts'
import { serve } from '../../support/executable.ts'
import { randomNumbers } from '../../support/random.ts'
import { type Asked, expectedList, type Model, queryOf } from '../support/list-model.ts'
import { startService } from '../support/service.ts'
import { SOCKET_TRANSPORTS } from '../support/transports.ts'

const STEPS = 40
/** Plants have one of so many ids, so that creates and deletes meet. */
const IDS = 24
const WRITES_AT_ONCE_MAX = 8
/** So few that most were asked before. */
const ASKED: readonly Asked[] = [
  { limit: 1 },
  { limit: 3 },
  { limit: 3, after: 4n },
  { limit: 5, after: 11n },
  { limit: 1, after: 22n },
  { limit: 100 },
  {},
]

/** What failed can be repeated with `TEST_SEED`. */
const SEED = Number(process.env.TEST_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0])

describe.each(SOCKET_TRANSPORTS)('two servers on one database, one of them $name', (transport) => {
  test('list exactly what both have stored, OTHERS_SEEN_WITHIN_MS after the answers', async () => {
    await using service = await startService(transport)
    await using other = await serve(service.database)
    const { token } = service
    const random = randomNumbers(SEED)
    const model: Model = new Map()
    const send = [
      (method: string, path: string, body?: object) =>
        body === undefined ? service.request(method, path) : service.create(body),
      async (method: string, path: string, body?: object) => {
        const answer = await other.request(method, path, { token, ...(body !== undefined && { body }) })
        return { status: answer.status, headers: answer.headers, text: await answer.text() }
      },
    ] as const
    const anyone = () => send[random(2) as 0 | 1]

    /** Creates a plant, or deletes it if it is there. */
    const write = async (id: bigint, name: string): Promise<number> => {
      const isThere = model.has(id)
      if (isThere) model.delete(id)
      else model.set(id, name)
      const answer = isThere
        ? await anyone()('DELETE', `/plants/${id}`)
        : await anyone()('POST', '/plants', { id: Number(id), name })
      return answer.status
    }

    for (let step = 0; step < STEPS; step++) {
      const ids = new Set(Array.from({ length: random(WRITES_AT_ONCE_MAX) }, () => BigInt(random(IDS))))
      const statuses = await Promise.all([...ids].map((id) => write(id, `plant ${id} of step ${step}`)))
      expect([SEED, step, statuses.filter((status) => status !== 200 && status !== 204)]).toEqual([SEED, step, []])

      await Bun.sleep(OTHERS_SEEN_WITHIN_MS)
      for (const ask of send) {
        for (let lists = 0; lists < 3; lists++) {
          const asked = ASKED[random(ASKED.length)] ?? {}
          const { status, headers, text } = await ask('GET', `/plants${queryOf(asked)}`)
          const names = JSON.parse(text).map((plant: { name: string }) => plant.name)
          expect([SEED, step, asked, status, { shown: names, link: headers.get('link') }]).toEqual([
            SEED,
            step,
            asked,
            200,
            expectedList(model, asked),
          ])
        }
      }
    }
  })
})
