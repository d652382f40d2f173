import { describe, expect, test } from 'bun:test'
import type { Store } from '../../src/domain/store.ts'
import type { UserId } from '../../src/domain/token.ts'
import { LIST_MAX_BYTES } from '../../src/http/lists/render-list.ts'
import { until } from '../support/until.ts'
import { countPages, namesIn, nextOf } from './support/long-lists.ts'
import { type Answer, type Service, startService } from './support/service.ts'
import { IN_PROCESS, OVER_TCP } from './support/transports.ts'

/** Each list, with what its body has for each plant besides the name: that ends in a comma for all but the last. */
const LISTS = [
  { include: '', around: '{"name":""},' },
  { include: '&include=id', around: '{"id":10,"name":""},' },
] as const
/** So many plants of equal length make a list of `LIST_MAX_BYTES`. Each page of the store has several of them. */
const COUNT = 64
/** All ids have two digits. */
const FIRST_ID = 10
const SECOND_LAST_ID = FIRST_ID + COUNT - 2
const UNITS = LIST_MAX_BYTES / COUNT / 2
const LIMIT = '?limit=2147483647'

describe.each(OVER_TCP)('a capped list of LIST_MAX_BYTES, $name', (transport) => {
  test.each(LISTS)(
    'is answered whole, and with one byte more ends before its last plant, where its Link leads, with "$include"',
    async ({ include, around }) => {
      await using service = await startService(transport)
      const user = await service.userIdOf('me')
      const names = await createFull(service.store, user, around)

      const whole = await service.list(LIMIT + include)
      await service.store.deletePlant(user, BigInt(FIRST_ID))
      await service.store.createPlant(user, { id: BigInt(FIRST_ID), name: `${names[0]}x` })
      const answer = await service.list(LIMIT + include)
      const rest = `${LIMIT}&after=${SECOND_LAST_ID}${include}`
      const next = await service.list(rest)

      expect(Buffer.byteLength(whole.text)).toBe(LIST_MAX_BYTES)
      expect(summaryOf(whole)).toEqual({ plants: COUNT, link: null })
      expect(namesIn(whole)).toEqual(names)
      expect(summaryOf(answer)).toEqual({ plants: COUNT - 1, link: `<${rest}>; rel="next"` })
      expect(summaryOf(next)).toEqual({ plants: 1, link: null })
      expect([...namesIn(answer), ...namesIn(next)]).toEqual([`${names[0]}x`, ...names.slice(1)])
    },
  )

  test('has a plant alone that is larger than LIST_MAX_BYTES', async () => {
    await using service = await startService(transport)
    const user = await service.userIdOf('me')
    const names = ['Fern', '€'.repeat(LIST_MAX_BYTES / 3), 'Ivy', 'x'.repeat(LIST_MAX_BYTES)]
    for (const [id, name] of names.entries()) await service.store.createPlant(user, { id: BigInt(id), name })

    const answers: Answer[] = []
    for (let query: string | undefined = LIMIT; query !== undefined; ) {
      const answer: Answer = await service.list(query)
      answers.push(answer)
      query = nextOf(answer)
    }

    expect(answers.map((answer) => namesIn(answer).map((name) => name.length))).toEqual(
      names.map((name) => [name.length]),
    )
    expect(answers.flatMap(namesIn)).toEqual(names)
  })
})

describe.each(IN_PROCESS)('a capped list whose pages are counted, $name', (transport) => {
  test('is read from the store no further than LIST_MAX_BYTES', async () => {
    const { pages, overrideStore } = countPages()
    await using service = await startService(transport, { overrideStore })
    await createPlants(service, 16, 'x'.repeat(LIST_MAX_BYTES / 8))

    const { headers } = await service.list(LIMIT)

    expect(headers.get('link')).toBe(`<${LIMIT}&after=6>; rel="next"`)
    expect(pages()).toBe(8)
  })
})

describe.each(OVER_TCP)('a capped list of LIST_MAX_BYTES that is being read, $name', (transport) => {
  test('lets a request that comes meanwhile be answered first', async () => {
    const { pages, overrideStore } = countPages()
    await using service = await startService(transport, { overrideStore })
    await createPlants(service, COUNT, 'x'.repeat(LIST_MAX_BYTES / COUNT))
    const answered: string[] = []
    const list = async (query: string) => {
      const { status } = await service.list(query)
      answered.push(`${query} ${status}`)
    }

    const listing = list(LIMIT)
    await until('it is being read', (see) => see(pages()) > 0, { lookMs: 0 })
    await Promise.all([listing, list('?limit=0')])

    expect(answered).toEqual(['?limit=0 200', `${LIMIT} 200`])
  })
})

/** Creates plants whose list has `LIST_MAX_BYTES`. Returns their names in order. */
async function createFull(store: Store, user: UserId, around: string): Promise<string[]> {
  // Each name is an even number of bytes short of its share, and the first makes up for the brackets.
  const names = Array.from({ length: COUNT }, () => 'é'.repeat(UNITS - around.length / 2))
  names[0] = `${names[0]?.slice(1)}x`
  await Promise.all(names.map((name, id) => store.createPlant(user, { id: BigInt(FIRST_ID + id), name })))
  return names
}

/** Creates so many plants of one name. */
async function createPlants({ store, userIdOf }: Service, count: number, name: string): Promise<void> {
  const user = await userIdOf('me')
  for (let id = 0n; id < BigInt(count); id++) await store.createPlant(user, { id, name })
}

const summaryOf = (answer: Answer) => ({ plants: namesIn(answer).length, link: answer.headers.get('link') })
